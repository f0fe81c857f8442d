"""Wedged: move to another host. Each step is persisted before it is taken and resumable after a crash."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from gpupod_operator.api.gpupod_status import (
    Attempt,
    AttemptCause,
    AttemptIntent,
    HistoryEntry,
    MigrationStatus,
    MigrationStep,
    Receipt,
)
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import DrainFirst, GateReason
from gpupod_operator.core.gpupod import permission
from gpupod_operator.core.gpupod.burn import may_land_until
from gpupod_operator.core.gpupod.draining import drain
from gpupod_operator.core.gpupod.episodes import clear_episode
from gpupod_operator.core.gpupod.scope import Act, Presence, Scope, Step, Wait
from gpupod_operator.core.gpupod.spend import accrued
from gpupod_operator.core.ownership import OwnedPod
from gpupod_operator.core.plan import CaptureLogs, DeletePod

BEFORE_DELETE = (MigrationStep.CAPTURE_LOGS, MigrationStep.GATE)


def begin(scope: Scope, reason: str) -> None:
    """Record that the pod is to be moved; nothing has been done to it yet."""
    old = scope.status.migration
    count, start = window(scope)
    scope.put(
        migration=MigrationStatus(
            step=MigrationStep.CAPTURE_LOGS,
            **{"from": scope.pod_id},
            reason=reason,
            started_at=scope.now,
            count_in_window=count,
            window_start=start if old is not None or count else scope.now,
        )
    )


def window(scope: Scope) -> tuple[int, object]:
    """Migrations counted in the running window and its start; an expired window starts anew."""
    before = scope.status.migration
    if before is None or before.window_start is None:
        return 0, scope.now
    if scope.now - before.window_start > scope.spec.remediation.window:
        return 0, scope.now
    return before.count_in_window or 0, before.window_start


def active_step(scope: Scope) -> MigrationStep | None:
    """The step in progress, None when no migration runs."""
    migration = scope.status.migration
    if migration is None or migration.step is None or migration.step is MigrationStep.DONE:
        return None
    return migration.step


def abort(scope: Scope) -> None:
    """The pod recovered before the first DELETE was sent: it stays."""
    migration = scope.status.migration
    if migration is not None:
        scope.put(
            migration=migration.model_copy(update={"step": None, "from_": None, "reason": None, "started_at": None})
        )


def move_off(scope: Scope) -> Step:
    """Capture, ask the gate, delete. Asked again at every pass until the answer is Safe."""
    count, _ = window(scope)
    if count >= scope.spec.remediation.max_migrations:
        scope.condition("Wedged", True, Reason.MIGRATION_BUDGET_EXHAUSTED, "the migration budget is used up")
        return Wait(
            Reason.MIGRATION_BUDGET_EXHAUSTED,
            f"pod {scope.pod_id} is wedged and {count} migrations were made within remediation.window: nothing more is "
            f"done until the window is over. Raise remediation.maxMigrations to move it sooner; it bills "
            f"{scope.price}",
            stalled=True,
        )
    migration = scope.status.migration
    attempt = scope.status.attempt
    assert migration is not None and attempt is not None and scope.pod_id is not None
    if migration.step is MigrationStep.CAPTURE_LOGS:
        scope.put(migration=migration.model_copy(update={"step": MigrationStep.GATE}))
        return Act(
            CaptureLogs(scope.pod_id, attempt.id or "", scope.target() if _in_contact(scope) else None),
            Reason.MIGRATING,
            f"moving off pod {scope.pod_id} ({migration.reason}): saving its logs first",
        )
    verdict = permission.ask(scope, GateReason.MIGRATE)
    if isinstance(verdict, DrainFirst):
        return drain(scope, verdict)
    if not isinstance(verdict, Receipt):
        return verdict
    return delete(scope, verdict, f"migration: {migration.reason}", step=MigrationStep.CONFIRM_GONE, count=count + 1)


def _in_contact(scope: Scope) -> bool:
    """Did the last visit open a session? Without contact the host's own log is all that can be had."""
    probe = scope.status.probe
    return probe is not None and probe.class_ == "Ok"


def delete(
    scope: Scope, receipt: Receipt, why: str, *, step: MigrationStep | None = None, count: int | None = None
) -> Step:
    """The one DELETE of a recorded pod: the receipt is in the same status write as the intent (law 5)."""
    handle = permission.owned(scope, permission.live_pod(scope))
    if not isinstance(handle, OwnedPod):
        return handle
    scope.put(receipt=receipt)
    scope.put_attempt(intent=AttemptIntent.DELETE, intent_time=scope.now)
    migration = scope.status.migration
    if step is not None and migration is not None:
        scope.put(migration=migration.model_copy(update={"step": step, "count_in_window": count}))
    return Act(
        DeletePod(handle, why),
        Reason.DELETING,
        f"deleting pod {handle.id} ({why}); receipt {(receipt.digest or '')[:12]}: {permission.safe_words(receipt)}",
    )


def confirm_gone(scope: Scope) -> Step | None:
    """After the DELETE: live until proven gone. A DELETE that had no effect is permitted anew by the gate."""
    if scope.presence is Presence.GONE:
        retire(scope, f"Migrated: {reason_of(scope)}")
        migration = scope.status.migration
        if migration is not None:
            scope.put(migration=migration.model_copy(update={"step": MigrationStep.CREATE}))
        return None
    scope.condition("Provisioned", None, Reason.CONFIRMING_GONE, f"pod {scope.pod_id} was ordered deleted")
    attempt = scope.status.attempt
    ordered = attempt.intent_time if attempt is not None else None
    lingers = ordered is not None and scope.now - ordered > delete_again_after(scope)
    if scope.presence is Presence.PRESENT and lingers:
        migration = scope.status.migration
        reason = migration.reason if migration is not None else "deletion"
        verdict = permission.ask(scope, GateReason.MIGRATE)
        if isinstance(verdict, DrainFirst):
            return drain(scope, verdict)
        if not isinstance(verdict, Receipt):
            return verdict
        return delete(scope, verdict, f"again, the pod is still there: {reason}")
    scope.wake_in(scope.policy.observe_every)
    return Wait(
        Reason.CONFIRMING_GONE,
        f"pod {scope.pod_id} was deleted; gone only when a GET says 404 and {scope.policy.lists_for_gone} complete "
        f"lists agree. Until then it counts as billing {scope.price}",
    )


def delete_again_after(scope: Scope) -> timedelta:
    """How long a deleted pod may still be shown before the DELETE is repeated."""
    return scope.policy.order_patience


def retire(scope: Scope, reason: str) -> None:
    """The pod is proven gone: its attempt becomes history. The retired nonces travel on."""
    attempt, pod = scope.status.attempt, scope.status.pod
    if attempt is None or attempt.pod_id is None:
        return
    total = accrued(scope)
    entry = HistoryEntry(
        attempt=attempt.id,
        pod_id=attempt.pod_id,
        **{"from": attempt.created_at},
        until=scope.now,
        reason=reason,
        cost=max(total - (attempt.accrued_before or Decimal(0)), Decimal(0)),
        logs=attempt.logs,
    )
    clear_episode(scope)
    scope.put(
        attempt=Attempt(
            id=None,
            retired_nonces=_retired(attempt),
            may_land_until=may_land_until(attempt),
            per_hour=attempt.per_hour,
            cause=attempt.cause,
            accrued_before=total,
        ),
        pod=None,
        endpoint=None,
        probe=None,
        workload=None,
        approval=None,
        history=(*(scope.status.history or ()), entry)[-20:],
    )
    del pod
    scope.presence = Presence.NONE
    scope.pod = None


def _retired(attempt: Attempt) -> tuple[str, ...]:
    """Nonces known for ghosts, the one that is forgotten first at the front.

    A create that was answered plainly has made its one pod, so its nonce must not crowd out those of open outcomes.
    """
    known = tuple(attempt.retired_nonces or ())
    if attempt.nonce is None:
        return known
    return ((*known, attempt.nonce) if attempt.unknown_since is not None else (attempt.nonce, *known))[-10:]


def reason_of(scope: Scope) -> str:
    """Why the pod is moved, as the migration recorded it when it began."""
    migration = scope.status.migration
    return (migration.reason if migration is not None else None) or "asked for"


def finish(scope: Scope) -> None:
    """Ready again and relaunched: the migration is over."""
    migration = scope.status.migration
    if migration is None:
        return
    scope.put(
        migration=migration.model_copy(update={"step": None, "from_": None, "reason": None, "started_at": None}),
        migrations=(scope.status.migrations or 0) + 1,
    )


CAUSE = AttemptCause.MIGRATION
