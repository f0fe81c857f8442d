"""What stands in the way whatever the cells say: shields, approval, and what a migration needs."""

from __future__ import annotations

from datetime import timedelta

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate.question import GateAct, GateQuestion, GateReason
from gpupod_operator.core.gate.verdict import Block
from gpupod_operator.core.provider import ProviderPod

APPROVAL_LIFE = timedelta(hours=24)
"""api.md, Annotations: an approval counts for 24 h from first sight."""


def standing_blocks(q: GateQuestion, pod: ProviderPod) -> tuple[Block, ...]:
    """Shields first: while one of them is up nothing else is worth telling."""
    shields = _shields(q)
    if shields:
        return shields
    blocks: list[Block] = []
    if q.reason in (GateReason.MIGRATE, GateReason.EXPIRE):
        blocks += _approval(q)
    if q.reason is GateReason.MIGRATE:
        blocks += _migration(q)
    if q.reason in (GateReason.MIGRATE, GateReason.REPLACE):
        blocks += _host_volume(q, pod)
    return tuple(blocks)


def _shields(q: GateQuestion) -> tuple[Block, ...]:
    if q.spec.paused:
        return (Block(Reason.PAUSED, "the object is paused", "set spec.paused: false"),)
    if q.spec.keep_running and q.reason is not GateReason.UNDO:
        return (Block(Reason.KEEP_RUNNING, "spec.keepRunning shields the pod", "set spec.keepRunning: false"),)
    return ()


def _approval(q: GateQuestion) -> list[Block]:
    if q.spec.remediation.approval == "WhenVerified" or q.approved_by is not None:
        return []
    edit = f"annotate gpupod.dev/approve-terminate: {q.pod_id}"
    seen = q.status.approval
    first = seen.first_seen if seen is not None and seen.pod_id == q.pod_id else None
    if first is not None and q.now - first >= APPROVAL_LIFE:
        return [Block(Reason.APPROVAL_EXPIRED, "the approval is older than 24 h", f"remove it, then {edit}")]
    return [Block(Reason.APPROVAL_REQUIRED, "remediation.approval is Manual", edit)]


def _migration(q: GateQuestion) -> list[Block]:
    blocks: list[Block] = []
    if q.recreate_problem is not None:
        blocks.append(
            Block(
                Reason.INVALID_REQUEST,
                f"no pod could be created afterwards: {q.recreate_problem}",
                "complete spec.placement.candidates and spec.container.image",
            )
        )
    if _budget_used(q) >= q.spec.remediation.max_migrations:
        blocks.append(
            Block(
                Reason.MIGRATION_BUDGET_EXHAUSTED,
                f"{_budget_used(q)} migrations in the present window",
                "raise spec.remediation.maxMigrations, or wait for the window to end",
            )
        )
    if q.breaker_open:
        blocks.append(
            Block(
                Reason.BREAKER_OPEN,
                "many pods turned unreachable at once, so the provider is suspected and not this host",
                f"wait, or annotate gpupod.dev/close-breaker: {q.now:%Y-%m-%dT%H:%M:%SZ}",
            )
        )
    return blocks


def _budget_used(q: GateQuestion) -> int:
    receipt, migration = q.status.receipt, q.status.migration
    if receipt is not None and receipt.pod_id == q.pod_id and receipt.reason == GateReason.MIGRATE:
        return 0  # This migration was permitted and counted before; a repeated DELETE is no second one.
    if migration is None or migration.count_in_window is None:
        return 0
    start = migration.window_start
    if start is not None and q.now - start >= q.spec.remediation.window:
        return 0
    return migration.count_in_window


def _host_volume(q: GateQuestion, pod: ProviderPod) -> list[Block]:
    declared = q.spec.volume is not None and q.spec.volume.persistent is not None
    if not (declared or pod.persistent_gb) or q.effective_act is not GateAct.DESTROY:
        return []
    if q.spec.remediation.host_volume == "Discard":
        return []
    return [
        Block(
            Reason.HOST_VOLUME_KEPT,
            "the pod has a persistent volume, which lives on its host and cannot move",
            "set spec.remediation.hostVolume: Discard, or move the data to a network volume",
        )
    ]
