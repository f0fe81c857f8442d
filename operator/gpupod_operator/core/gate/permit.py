"""From standings to a permission: the receipt and the evidence it stands for."""

from __future__ import annotations

from typing import Any

from gpupod_operator.api.times import format_time
from gpupod_operator.core.gate.inflight import proof_of_life
from gpupod_operator.core.gate.question import CellFacts, GateQuestion, GateReason
from gpupod_operator.core.gate.standings import CellStanding, Outcome
from gpupod_operator.core.gate.verdict import Safe
from gpupod_operator.core.known import Known
from gpupod_operator.core.receipts import write_receipt

RERUN_REASONS = frozenset({GateReason.MIGRATE, GateReason.REPLACE, GateReason.RESET, GateReason.UNDO})
"""After these the workload is launched again; after the others an unfinished cell is discarded."""

_MAX_QUOTED = 5


def permit(
    q: GateQuestion, standings: tuple[CellStanding, ...], ground: str, cells: tuple[CellFacts, ...] = ()
) -> Safe:
    """Safe, with the receipt of this pass. `ground` is the rule that allowed it; empty means the cells' table."""
    unfinished = [s.name for s in standings if s.outcome is Outcome.UNFINISHED]
    given_up = [s.name for s in standings if s.outcome in (Outcome.ABANDONED, Outcome.LOST)]
    rerun = unfinished if q.reason in RERUN_REASONS else []
    discarded = given_up if q.reason in RERUN_REASONS else [*given_up, *unfinished]
    policy = _policy(q, standings, ground, cells)
    evidence = _evidence(q, standings, policy)
    receipt = write_receipt(
        pod_id=q.pod_id,
        at=q.now,
        reason=q.reason,
        evidence=evidence,
        verified=sum(s.outcome is Outcome.VERIFIED for s in standings),
        rerun=rerun,
        discarded=discarded,
        policy=policy,
        approved_by=q.approved_by,
    )
    return Safe(receipt, evidence)


def _policy(q: GateQuestion, standings: tuple[CellStanding, ...], ground: str, cells: tuple[CellFacts, ...]) -> str:
    remediation = q.spec.remediation
    parts = [ground or f"approval: {remediation.approval}, artifacts: {remediation.artifacts}"]
    if any(s.outcome is Outcome.UNFINISHED for s in standings):
        parts.append(f"inFlight: {remediation.in_flight}")
    if any(s.in_flight for s in standings):
        parts.append(proof_of_life(q, cells))
    reasons = sorted({str(s.evidence["abandoned"]) for s in standings if s.outcome is Outcome.ABANDONED})
    parts += [f"abandon-data: {reason}" for reason in reasons[:_MAX_QUOTED]]
    return "; ".join(part for part in parts if part)


def _evidence(q: GateQuestion, standings: tuple[CellStanding, ...], policy: str) -> dict[str, Any]:
    pod = q.pod.value if isinstance(q.pod, Known) else None
    return {
        "podId": q.pod_id,
        "reason": str(q.reason),
        "act": str(q.effective_act),
        "at": format_time(q.now),
        "account": q.account.value.id if isinstance(q.account, Known) else None,
        "gone": q.gone,
        "providerStatus": pod.raw_state if pod is not None else None,
        "policy": policy,
        "approvedBy": q.approved_by,
        "cells": {s.name: {"outcome": str(s.outcome), **s.evidence} for s in standings},
    }
