"""decide(): the phases of a GpuPod over one scope. No I/O, no clock, no logging."""

from __future__ import annotations

from datetime import timedelta

from gpupod_operator.api.annotations import APPROVE_TERMINATE, MIGRATE, RESUME
from gpupod_operator.api.gpupod_status import (
    ApprovalStatus,
    AttemptCause,
    AttemptIntent,
    Ended,
    MigrationStep,
    Receipt,
)
from gpupod_operator.api.phases import EndedAct, WorkloadState
from gpupod_operator.api.policies import OnSuccess, PodState, RemediationAction
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import DrainFirst, GateReason
from gpupod_operator.core.gpupod import migration, permission, stopping
from gpupod_operator.core.gpupod.admission import check_account, check_supported
from gpupod_operator.core.gpupod.creating import adopt, create, settle_unknown_create
from gpupod_operator.core.gpupod.diagnosis import keep_window
from gpupod_operator.core.gpupod.draining import drain, withdraw_drain
from gpupod_operator.core.gpupod.drift import check_drift
from gpupod_operator.core.gpupod.episodes import is_wedged, note_fault
from gpupod_operator.core.gpupod.identity import reconcile_identity
from gpupod_operator.core.gpupod.observing import observe
from gpupod_operator.core.gpupod.reachability import check_reachable
from gpupod_operator.core.gpupod.scope import Act, Ask, Presence, Release, Scope, Step, Wait
from gpupod_operator.core.gpupod.spend import checkpoint
from gpupod_operator.core.gpupod.starting import bargain_problem, ended_by_itself, mark_ended, start_pod_up, zero_gpus
from gpupod_operator.core.gpupod.status import conclude, transitions
from gpupod_operator.core.gpupod.teardown import tear_down
from gpupod_operator.core.gpupod.workload import place
from gpupod_operator.core.plan import Plan
from gpupod_operator.core.provider import ProviderState


def decide(scope: Scope) -> Plan:
    """One plan for one pass: needs, or at most one act, and the whole new status.

    `scope.status` starts as the committed status (`scope.before`). The same inputs give the same plan.
    """
    scope.status = scope.before
    if scope.facts.cells_summary is not None and scope.facts.cells_summary != scope.before.cells:
        scope.put(cells=scope.facts.cells_summary)
    _sight_approval(scope)
    step = _chain(scope)
    if isinstance(step, Ask):
        return Plan(status=scope.before, needs=step.needs)
    checkpoint(scope)
    status = conclude(scope, step)
    wake = min(scope.wakes) if scope.wakes else None
    if isinstance(step, Wait) and step.until is not None:
        wake = min(w for w in (wake, max(step.until - scope.now, timedelta(0))) if w is not None)
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
    seen = observe(scope)
    if seen is not None:
        return seen
    if first is not None:
        return first if not _nothing_to_end(scope) else Release("no pod was ever created")
    identity = reconcile_identity(scope) if not scope.spec.paused else None
    if identity is not None:
        return identity
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
    """Deleting, and no create was ever even intended: a broken key must not hold the object."""
    return scope.identity.deleting and scope.before.attempt is None


def _only_watch(scope: Scope) -> Step | None:
    if scope.presence in (Presence.PRESENT, Presence.FRESH):
        start_pod_up(scope)
        if scope.presence is Presence.PRESENT:
            asked = check_reachable(scope)
            if isinstance(asked, Ask):
                return asked
    scope.wake_in(scope.policy.observe_every)
    return Wait(
        Reason.PAUSED,
        "paused: observed and rendered, acted on in no way. Set spec.paused to false to go on",
        steady=True,
    )


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
    undone = _undo(scope)
    if undone is not None:
        return undone
    return _running(scope)


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
    why = "migration" if moving else "spec.state is Running"
    if scope.adopt_id is not None and not scope.spec.placement.candidates:
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
    migration.retire(scope, "Deleted" if ordered else "TerminatedOutside")
    receipt = scope.status.receipt
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


def _undo(scope: Scope) -> Step | None:
    """Not what was asked for: over a cap, wrong GPU count. Undone at once; the gate asks ownership only."""
    problem = bargain_problem(scope)
    if problem is None:
        return None
    reason, words = problem
    attempt = scope.status.attempt
    assert attempt is not None
    if _confirming_delete(scope):
        scope.wake_in(scope.policy.observe_every)
        return Wait(Reason.CONFIRMING_GONE, f"{words}: deleted, waiting for the proof")
    verdict = permission.ask(scope, GateReason.UNDO)
    if isinstance(verdict, DrainFirst):
        return drain(scope, verdict)
    if not isinstance(verdict, Receipt):
        return verdict
    scope.condition("SpendAllowed", False, reason, words)
    return migration.delete(scope, verdict, f"undone: {words}")


def _running(scope: Scope) -> Step | None:
    attempt = scope.status.attempt
    assert attempt is not None
    if _confirming_delete(scope):
        scope.wake_in(scope.policy.observe_every)
        return Wait(Reason.CONFIRMING_GONE, f"pod {scope.pod_id} was deleted; waiting for the proof that it is gone")
    exited = scope.presence is Presence.PRESENT and scope.pod is not None and scope.pod.state is ProviderState.EXITED
    if exited and _resumable(scope):
        return stopping.start(scope)
    if scope.pod is not None and attempt.intent is AttemptIntent.START and scope.pod.state is ProviderState.RUNNING:
        scope.put_attempt(intent=AttemptIntent.NONE, intent_time=None, backoff=None)
    ended = ended_by_itself(scope)
    if ended is not None:
        return ended
    asked = scope.identity.annotations.get(MIGRATE) == scope.pod_id
    if asked and migration.active_step(scope) is None:
        migration.begin(scope, "a person asked for it by annotation")
    up = start_pod_up(scope)
    if up is None:
        if zero_gpus(scope):
            note_fault(scope, Reason.ZERO_GPU, scope.now)
        up = check_reachable(scope)
    if isinstance(up, Ask):
        return up
    return _remedy(scope, up, asked=asked)


def _confirming_delete(scope: Scope) -> bool:
    attempt = scope.status.attempt
    return (
        attempt is not None
        and attempt.intent is AttemptIntent.DELETE
        and attempt.intent_time is not None
        and scope.now - attempt.intent_time <= migration.delete_again_after(scope)
    )


def _resumable(scope: Scope) -> bool:
    """Stopped by our order and the end was lifted, or a start of ours is due again. Never what a person stopped."""
    before, attempt = scope.before.ended, scope.status.attempt
    assert attempt is not None
    if attempt.intent is AttemptIntent.START:
        since = attempt.intent_time
        return since is None or scope.now - since > migration.delete_again_after(scope)
    if attempt.backoff is not None and attempt.start_requested_at is not None:
        return True
    lifted = before is not None and scope.status.ended is None and before.pod_id == scope.pod_id
    return lifted or scope.identity.annotations.get(RESUME) == scope.pod_id


def _remedy(scope: Scope, up: Step | None, *, asked: bool) -> Step | None:
    """Wedged, or asked to move: act by policy. Recovered before the first DELETE: stay."""
    wedged = is_wedged(scope)
    step = migration.active_step(scope)
    if wedged or asked:
        action = scope.spec.remediation.action
        if action is RemediationAction.REPORT and not asked:
            return up or Wait(
                Reason.REPORT_ONLY,
                f"pod {scope.pod_id} is wedged and remediation.action is Report: it goes on billing {scope.price}. Set "
                f"gpupod.dev/migrate: {scope.pod_id} to move it",
                stalled=True,
            )
        if action is RemediationAction.STOP and not asked:
            return stopping.stop(scope, GateReason.STOP, "it is wedged and remediation.action is Stop")
        if step in (None, MigrationStep.AWAIT_READY, MigrationStep.RELAUNCH, MigrationStep.CREATE):
            episode = scope.status.episode
            migration.begin(scope, episode.kind if episode is not None and episode.kind else "asked for")
        return migration.move_off(scope)
    reachable = scope.conditions.get("Reachable", ("",))[0] == "True"
    if step in migration.BEFORE_DELETE and reachable:
        migration.abort(scope)
        withdraw_drain(scope)
    if up is not None:
        return up
    return _settled(scope)


def _settled(scope: Scope) -> Step | None:
    """Reachable: place agent and workload, then see whether the work is over."""
    placed = place(scope)
    if placed is not None:
        return keep_window(scope) or placed if isinstance(placed, Wait) else placed
    if migration.active_step(scope) in (MigrationStep.CREATE, MigrationStep.AWAIT_READY, MigrationStep.RELAUNCH):
        migration.finish(scope)
    window = keep_window(scope)
    if window is not None:
        return window
    return _on_success(scope)


def _on_success(scope: Scope) -> Step | None:
    """Succeeded and every cell verified: end the pod as `workload.onSuccess` says, through the gate."""
    workload, cells = scope.status.workload, scope.status.cells
    policy = scope.spec.workload.on_success
    if workload is None or workload.state is not WorkloadState.SUCCEEDED or policy is OnSuccess.KEEP:
        return None
    if not scope.facts.declared_cells or cells is None or cells.verified != cells.declared:
        return None
    if policy is OnSuccess.STOP:
        return stopping.stop(scope, GateReason.EXPIRE, "the workload succeeded and every cell is verified")
    verdict = permission.ask(scope, GateReason.EXPIRE)
    if isinstance(verdict, DrainFirst):
        return drain(scope, verdict)
    if not isinstance(verdict, Receipt):
        return verdict
    return migration.delete(scope, verdict, "the workload succeeded and every cell is verified")


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
