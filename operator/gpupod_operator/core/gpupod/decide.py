"""decide(): the phases of a GpuPod over one scope. No I/O, no clock, no logging."""

from __future__ import annotations

from datetime import timedelta

from gpupod_operator.api.annotations import APPROVE_TERMINATE
from gpupod_operator.api.gpupod_status import (
    ApprovalStatus,
    AttemptCause,
    AttemptIntent,
    Ended,
    MigrationStep,
)
from gpupod_operator.api.phases import EndedAct
from gpupod_operator.api.policies import PodState, RemediationAction
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import GateReason
from gpupod_operator.core.gpupod import migration, stopping
from gpupod_operator.core.gpupod.admission import check_account, check_supported
from gpupod_operator.core.gpupod.claiming import adopt, settle_unknown_create
from gpupod_operator.core.gpupod.creating import create
from gpupod_operator.core.gpupod.drift import check_drift
from gpupod_operator.core.gpupod.identity import reconcile_identity
from gpupod_operator.core.gpupod.observing import observe
from gpupod_operator.core.gpupod.reachability import check_reachable
from gpupod_operator.core.gpupod.refusals import refused_so_far
from gpupod_operator.core.gpupod.rounds import UNDONE, remember_undone
from gpupod_operator.core.gpupod.running import keep_running, undo
from gpupod_operator.core.gpupod.scope import Act, Ask, Presence, Release, Scope, Step, Wait
from gpupod_operator.core.gpupod.spend import checkpoint
from gpupod_operator.core.gpupod.starting import mark_ended, start_pod_up
from gpupod_operator.core.gpupod.status import conclude
from gpupod_operator.core.gpupod.teardown import let_go, tear_down
from gpupod_operator.core.gpupod.telling import transitions
from gpupod_operator.core.plan import Plan


def decide(scope: Scope) -> Plan:
    """One plan for one pass: needs, or at most one act, and the whole new status.

    `scope.status` starts as the committed status (`scope.before`). The same inputs give the same plan.
    """
    scope.status = scope.before
    if scope.facts.cells_summary is not None and scope.facts.cells_summary != scope.before.cells:
        scope.put(cells=scope.facts.cells_summary)
    _sight_approval(scope)
    stopping.forget_resume(scope)
    step = refused_so_far(scope, _chain(scope))
    if isinstance(step, Ask):
        return Plan(status=scope.before, needs=step.needs)
    checkpoint(scope)
    status = conclude(scope, step)
    wake = min(scope.wakes) if scope.wakes else None
    if isinstance(step, Wait):
        due = step.until - scope.now + timedelta(milliseconds=10) if step.until is not None else None
        if due is not None and due <= timedelta(0) and not step.at_once:
            due = None  # a deadline that passed without a change is no reason to look again and again at once
        # what unblocks a wait (a Secret, a network volume, the catalog) is not watched: look again within a minute
        again = None if step.steady else scope.policy.recheck
        wake = min((w for w in (wake, due, again) if w is not None), default=None)
    return Plan(
        status=status,
        action=step.action if isinstance(step, Act) else None,
        wake=wake,
        release=isinstance(step, Release),
        transitions=transitions(scope.before, status),
        sentence=status.message or "",
    )


def _chain(scope: Scope) -> Step | None:
    """The phases, in order; the first that has something to say ends the pass."""
    first = check_account(scope)
    if isinstance(first, Ask):
        return first
    if first is not None:
        scope.presence = Presence.NONE if scope.pod_id is None else Presence.UNKNOWN
        if _nothing_to_end(scope):
            return Release("no pod of this object exists")
        return let_go(scope) or first
    seen = observe(scope)
    if seen is not None:
        return seen
    identity = reconcile_identity(scope) if not scope.spec.paused else None
    if identity is not None:
        return _look_on(scope) or identity
    if scope.identity.deleting:
        return tear_down(scope)
    refused = check_supported(scope)
    if refused is not None:
        return refused
    check_drift(scope)
    if scope.spec.paused:
        return _only_watch(scope)
    if scope.presence is Presence.UNKNOWN:
        return _hold(scope)
    return _wanted(scope)


def _nothing_to_end(scope: Scope) -> bool:
    """Deleting, no pod on record and no create under way: a broken key must not hold the object."""
    attempt = scope.before.attempt
    idle = attempt is None or (attempt.pod_id is None and attempt.intent in (None, AttemptIntent.NONE))
    given_up = attempt is not None and attempt.pod_id in (scope.before.released or ())
    return scope.identity.deleting and (idle or given_up)


def _only_watch(scope: Scope) -> Step | None:
    if scope.pod_id is None and scope.adopt_id is not None:
        taken = adopt(scope)  # writes nothing to the pod: a paused object may observe and render what it names
        if taken is not None:
            return taken
    asked = _look_on(scope)
    if asked is not None:
        return asked
    scope.wake_in(scope.policy.observe_every)
    return Wait(
        Reason.PAUSED,
        "paused: observed and rendered, acted on in no way. Set spec.paused to false to go on",
        steady=True,
    )


def _look_on(scope: Scope) -> Ask | None:
    """Conditions and row follow the pod, whatever holds our hands."""
    if scope.presence not in (Presence.PRESENT, Presence.FRESH):
        return None
    start_pod_up(scope)
    asked = check_reachable(scope) if scope.presence is Presence.PRESENT else None
    return asked if isinstance(asked, Ask) else None


def _hold(scope: Scope) -> Step:
    """Unknown: rows and status stay, nothing is acted on."""
    inventory = scope.facts.inventory
    why = inventory.message if inventory is not None else "not listed yet"
    return Wait(
        Reason.OBSERVATION_FAILED,
        f"the account cannot be read now ({why}): everything stays as it is. Pod {scope.pod_id} bills {scope.price} as "
        f"far as is known",
    )


def _wanted(scope: Scope) -> Step | None:
    if scope.presence is Presence.GONE and scope.status.ended is not None:
        migration.retire(scope, "TerminatedOutside")
    ended = stopping.keep_ended(scope)
    if ended is not None:
        return ended
    if scope.presence is Presence.GONE:
        after = _gone(scope)
        if after is not None:
            return after
    if scope.pod_id is None:
        return _no_pod(scope)
    if migration.active_step(scope) is MigrationStep.CONFIRM_GONE:
        return migration.confirm_gone(scope) or _no_pod(scope)
    if scope.spec.state is PodState.STOPPED:
        return stopping.stop(scope, GateReason.STOP, stopping.STOPPED_BY_STATE)
    undone = undo(scope)
    if undone is not None:
        return undone
    return keep_running(scope)


def _no_pod(scope: Scope) -> Step | None:
    unsettled = settle_unknown_create(scope)
    if unsettled is not None:
        return unsettled
    if scope.spec.state is PodState.STOPPED:
        return Wait(Reason.STOP_REQUESTED, "spec.state is Stopped and no pod exists: nothing bills", steady=True)
    adopted = adopt(scope)
    if adopted is not None:
        return adopted
    moving = migration.active_step(scope) is not None
    cause = AttemptCause.MIGRATION if moving else AttemptCause.SPEC
    why = f"migration ({migration.reason_of(scope)})" if moving else "spec.state is Running"
    if scope.adopt_id is not None and not scope.spec.placement.candidates:
        migration.abort(scope)
        mark_ended(scope, EndedAct.OUTSIDE, f"adopted pod {scope.adopt_id} is gone")
        return stopping.keep_ended(scope)
    return create(scope, cause=cause, why=why)


def _gone(scope: Scope) -> Step | None:
    """Proven gone. By our order it goes on; otherwise somebody ended it."""
    attempt = scope.status.attempt
    assert attempt is not None
    if migration.active_step(scope) is MigrationStep.CONFIRM_GONE:
        return None
    gone_id = attempt.pod_id
    ordered = attempt.intent is AttemptIntent.DELETE
    receipt = scope.status.receipt
    undone = ordered and receipt is not None and receipt.reason == GateReason.UNDO and receipt.pod_id == gone_id
    migration.retire(scope, UNDONE if undone else "Deleted" if ordered else "TerminatedOutside")
    if undone:
        remember_undone(scope, attempt)
        return None
    if ordered and receipt is not None and receipt.reason == GateReason.EXPIRE and receipt.pod_id == gone_id:
        # an expiry stays ended; the receipt was written with the DELETE, so a crash in between loses nothing
        scope.put(ended=Ended(act=EndedAct.DELETE, reason="expired", pod_id=gone_id, at=scope.now))
        return stopping.keep_ended(scope)
    if ordered or scope.spec.state is PodState.STOPPED:
        return None
    count, _ = migration.window(scope)
    budget = count < scope.spec.remediation.max_migrations
    if scope.spec.remediation.action is RemediationAction.MIGRATE and budget:
        migration.begin(scope, f"pod {gone_id} was terminated outside")
        moving = scope.status.migration
        assert moving is not None
        scope.put(
            migration=moving.model_copy(
                update={"step": MigrationStep.CREATE, "from_": gone_id, "count_in_window": count + 1}
            )
        )
        return None
    scope.put(ended=Ended(act=EndedAct.OUTSIDE, reason="terminated outside", pod_id=gone_id, at=scope.now))
    return stopping.keep_ended(scope)


def _sight_approval(scope: Scope) -> None:
    """An approval is valid for a day from its first sight, which is recorded."""
    value = scope.identity.annotations.get(APPROVE_TERMINATE)
    seen = scope.status.approval
    if value is None or value != scope.pod_id:
        if seen is not None:
            scope.put(approval=None)
        return
    if seen is None or seen.pod_id != value:
        scope.put(approval=ApprovalStatus(pod_id=value, first_seen=scope.now))
