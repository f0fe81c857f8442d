"""A pod is recorded and wanted Running: undo, start, reach, remedy, place the work, end it when it is done."""

from __future__ import annotations

from gpupod_operator.api.annotations import MIGRATE
from gpupod_operator.api.gpupod_status import AttemptIntent, MigrationStep, Receipt
from gpupod_operator.api.phases import WorkloadState
from gpupod_operator.api.policies import OnSuccess, RemediationAction
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import DrainFirst, GateReason
from gpupod_operator.core.gpupod import migration, permission, stopping
from gpupod_operator.core.gpupod.bargain import bargain_problem, zero_gpus
from gpupod_operator.core.gpupod.ceilings import check_ceilings
from gpupod_operator.core.gpupod.diagnosis import keep_window
from gpupod_operator.core.gpupod.draining import drain, withdraw_drain
from gpupod_operator.core.gpupod.episodes import is_wedged, note_fault
from gpupod_operator.core.gpupod.launches import workload_over
from gpupod_operator.core.gpupod.limits import check_limits, ended_by_timer, total_used_up
from gpupod_operator.core.gpupod.patching import declare_port, note_patched
from gpupod_operator.core.gpupod.reachability import check_reachable
from gpupod_operator.core.gpupod.scope import Ask, Presence, Scope, Step, Wait
from gpupod_operator.core.gpupod.starting import ended_by_itself, start_pod_up
from gpupod_operator.core.gpupod.workload import place
from gpupod_operator.core.provider import ProviderState


def undo(scope: Scope) -> Step | None:
    """Not what was asked for: over a cap, wrong GPU count. Undone at once; the gate asks ownership only."""
    problem = bargain_problem(scope)
    if problem is None:
        return None
    reason, words = problem
    attempt = scope.status.attempt
    assert attempt is not None
    if confirming_delete(scope):
        scope.wake_in(scope.policy.observe_every)
        return Wait(Reason.CONFIRMING_GONE, f"{words}: deleted, waiting for the proof")
    verdict = permission.ask(scope, GateReason.UNDO)
    if isinstance(verdict, DrainFirst):
        return drain(scope, verdict)
    if not isinstance(verdict, Receipt):
        return verdict
    scope.condition("SpendAllowed", False, reason, words)
    return migration.delete(scope, verdict, f"undone: {words}")


def keep_running(scope: Scope) -> Step | None:
    """The recorded pod is wanted Running: start it, look at it, remedy it, put the work on it."""
    attempt = scope.status.attempt
    assert attempt is not None
    if confirming_delete(scope):
        scope.wake_in(scope.policy.observe_every)
        return Wait(Reason.CONFIRMING_GONE, f"pod {scope.pod_id} was deleted; waiting for the proof that it is gone")
    exited = scope.presence is Presence.PRESENT and scope.pod is not None and scope.pod.state is ProviderState.EXITED
    degraded = _zero_gpus(scope, exited=exited)
    if degraded is not None:
        return degraded
    if exited and _asked_to_move(scope):
        return _move(scope)
    if exited and _resumable(scope):
        return _start(scope)
    if scope.pod is not None and attempt.intent is AttemptIntent.START and scope.pod.state is ProviderState.RUNNING:
        scope.put_attempt(intent=AttemptIntent.NONE, intent_time=None, backoff=None)
    note_patched(scope)
    ended = ended_by_timer(scope) or ended_by_itself(scope)
    if ended is not None:
        return ended
    asked = _asked_to_move(scope)
    if asked and migration.active_step(scope) is None:
        migration.begin(scope, "a person asked for it by annotation")
    up = start_pod_up(scope)
    if up is None:
        up = check_reachable(scope)
    if isinstance(up, Ask):
        return up
    # after the look at the pod: an end that the gate holds must not blind us to what goes on paying
    limited = check_limits(scope)
    if limited is not None:
        return limited
    return _remedy(scope, up, asked=asked)


def _asked_to_move(scope: Scope) -> bool:
    return scope.pod_id is not None and scope.identity.annotations.get(MIGRATE) == scope.pod_id


def _start(scope: Scope) -> Step:
    """A start pays as a create does: nothing is left to spend, nothing is started, and the wish to start is kept."""
    attempt = scope.status.attempt
    used_up = total_used_up(scope) or check_ceilings(scope, attempt.per_hour if attempt is not None else None)
    if used_up is not None:
        scope.put(ended=scope.before.ended)
    return used_up or stopping.start(scope)


def _move(scope: Scope) -> Step:
    """A stopped pod that is to be moved: through the gate, as every migration."""
    if migration.active_step(scope) not in migration.BEFORE_DELETE:
        episode = scope.status.episode
        migration.begin(scope, episode.kind if episode is not None and episode.kind else "asked for by annotation")
    return migration.move_off(scope)


def _zero_gpus(scope: Scope, *, exited: bool) -> Step | None:
    """A start that gave no GPUs is a failed start: stopped at once, then a wedge whose clock need not run."""
    episode, attempt = scope.status.episode, scope.status.attempt
    assert attempt is not None
    if zero_gpus(scope) and attempt.restarted:
        note_fault(scope, Reason.ZERO_GPU, scope.now)
        words = f"pod {scope.pod_id} was started without GPUs"
        scope.condition("Reachable", False, Reason.ZERO_GPU, words)
        return stopping.stop(scope, GateReason.UNDO, words, ends=False)
    if not exited or episode is None or episode.kind != Reason.ZERO_GPU:
        return None
    if attempt.intent is AttemptIntent.STOP:
        scope.put_attempt(intent=AttemptIntent.NONE, intent_time=None, drained=None)
    scope.put(endpoint=None)
    if scope.spec.remediation.action is RemediationAction.MIGRATE or _asked_to_move(scope):
        return _move(scope)
    stopping.record_end(scope, "it was started without GPUs")
    return stopping.keep_ended(scope)


def confirming_delete(scope: Scope) -> bool:
    """A DELETE was sent a moment ago: look before anything else is done."""
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
    return lifted or stopping.resume_asked(scope, attempt.pod_id or "")


def _remedy(scope: Scope, up: Step | None, *, asked: bool) -> Step | None:
    """Wedged, or asked to move: act by policy. Recovered before the first DELETE: stay."""
    wedged = is_wedged(scope)
    step = migration.active_step(scope)
    episode = scope.status.episode
    undeclared = episode is not None and episode.kind == Reason.PORT_NOT_DECLARED and not asked
    if undeclared and scope.spec.remediation.action is not RemediationAction.REPORT:
        # no fault of the host: moving would only make the same pod again
        confirmed = episode is not None and (episode.observations or 0) >= scope.spec.health.confirmations
        return declare_port(scope) if confirmed else up
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
    if not workload_over(scope):
        withdraw_drain(scope)  # whatever wanted the pod ended is withdrawn: the work goes on
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
