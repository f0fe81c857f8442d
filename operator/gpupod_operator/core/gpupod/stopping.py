"""`spec.state: Stopped` and back, and ends that stay ended (`status.ended`)."""

from __future__ import annotations

from datetime import datetime

from gpupod_operator.api.annotations import RESUME
from gpupod_operator.api.gpupod_status import Attempt, AttemptCause, AttemptIntent, Ended, Receipt
from gpupod_operator.api.phases import EndedAct
from gpupod_operator.api.policies import DeletionPolicy, PodState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import DrainFirst, GateAct, GateReason
from gpupod_operator.core.gpupod import migration, permission
from gpupod_operator.core.gpupod.draining import drain
from gpupod_operator.core.gpupod.episodes import clear_episode, note_fault
from gpupod_operator.core.gpupod.refusals import FOR_A_PERSON, REMEDIES, reason_of, words
from gpupod_operator.core.gpupod.scope import Act, Presence, Scope, Step, Wait
from gpupod_operator.core.gpupod.spend import stopped_rate
from gpupod_operator.core.ownership import OwnedPod
from gpupod_operator.core.plan import StartPod, StopPod
from gpupod_operator.core.provider import ProviderPod, ProviderState

STOPPED_BY_STATE = "spec.state is Stopped"


def stop(scope: Scope, reason: GateReason, why: str, *, ends: bool = True) -> Step:
    """Through the gate to EXITED. Receipt, intent and (with `ends`) the end are written before the call."""
    pod = scope.pod
    if pod is not None and scope.presence is Presence.PRESENT and pod.state is ProviderState.EXITED:
        return _stopped(scope, why)
    if pod is not None and pod.state is ProviderState.ERROR:
        if scope.spec.state is PodState.STOPPED and scope.spec.deletion_policy is DeletionPolicy.TERMINATE:
            return _end_error(scope, pod)
        return Wait(
            Reason.HOST_FAULT,
            f"pod {pod.id} is in ERROR, which RunPod cannot stop: it may bill. Delete the object with deletionPolicy "
            f"Terminate, or set spec.state to Running to have it moved",
            stalled=True,
        )
    if scope.presence is not Presence.PRESENT or pod is None:
        scope.wake_in(scope.policy.observe_every)
        return Wait(Reason.STOPPING, f"pod {scope.pod_id} is not seen now: it is stopped once it is")
    attempt = scope.status.attempt
    assert attempt is not None
    if attempt.intent is AttemptIntent.STOP and attempt.intent_time is not None:
        again = attempt.intent_time + scope.policy.order_patience
        if scope.now < again:
            scope.wake_in(scope.policy.observe_every)
            return Wait(Reason.STOPPING, f"pod {pod.id} was ordered to stop ({why}); RunPod says {pod.raw_state}")
    verdict = permission.ask(scope, reason, act=GateAct.STOP)
    if isinstance(verdict, DrainFirst):
        return drain(scope, verdict)
    if not isinstance(verdict, Receipt):
        return verdict
    handle = permission.owned(scope, permission.live_pod(scope))
    if not isinstance(handle, OwnedPod):
        return handle
    scope.put(receipt=verdict)
    # an end is written with its receipt, before the call: a crash in between cannot turn it into somebody else's stop
    if ends:
        record_end(scope, why)
    scope.put_attempt(intent=AttemptIntent.STOP, intent_time=scope.now)
    return Act(StopPod(handle, why), Reason.STOPPING, f"stopping pod {handle.id}: {why}")


def _end_error(scope: Scope, pod: ProviderPod) -> Step:
    """RunPod cannot stop a pod in ERROR: where the policy deletes, the gate is asked to delete it instead."""
    attempt, words = scope.status.attempt, f"pod {pod.id} is in ERROR, which RunPod cannot stop"
    assert attempt is not None
    scope.wake_in(scope.policy.observe_every)
    sent = attempt.intent_time if attempt.intent is AttemptIntent.DELETE else None
    if sent is not None and scope.now - sent <= migration.delete_again_after(scope):
        return Wait(Reason.CONFIRMING_GONE, f"{words}: deleted, waiting for the proof that it is gone")
    if (note_fault(scope, Reason.HOST_FAULT).observations or 0) < scope.spec.health.confirmations:
        return Wait(Reason.HOST_FAULT, f"{words}; it is deleted by deletionPolicy once that is confirmed")
    verdict = permission.ask(scope, GateReason.STOP, act=GateAct.DESTROY)
    if isinstance(verdict, DrainFirst):
        return drain(scope, verdict)
    if not isinstance(verdict, Receipt):
        return verdict
    return migration.delete(scope, verdict, f"spec.state is Stopped and {words}")


def _stopped(scope: Scope, why: str) -> Step:
    attempt = scope.status.attempt
    assert attempt is not None
    if attempt.intent is AttemptIntent.STOP:
        scope.put_attempt(intent=AttemptIntent.NONE, intent_time=None, drained=None)
    if scope.status.ended is None:
        record_end(scope, why)
    scope.put(endpoint=None)
    clear_episode(scope)
    return steady(scope, why)


def record_end(scope: Scope, why: str) -> None:
    """`status.ended`: from here on nothing starts or creates until a person lifts it."""
    pod = scope.status.pod
    scope.put(
        ended=Ended(
            act=EndedAct.STOP,
            reason=why,
            pod_id=scope.pod_id,
            started_at=pod.started_at if pod is not None else None,
            at=scope.now,
        )
    )


def steady(scope: Scope, why: str) -> Step:
    """Stopped and meant to be: what the disks cost, and how to start again."""
    rate = stopped_rate(scope)
    scope.condition("Provisioned", False, Reason.STOPPED_BY_ORDER, f"pod {scope.pod_id} is stopped: {why}")
    scope.condition("Reachable", False, Reason.STOPPED_BY_ORDER, "the pod is stopped")
    return Wait(
        Reason.STOPPED_BY_ORDER,
        f"pod {scope.pod_id} is stopped ({why}); its disks cost ${rate.normalize():f}/h. Its host may be full when it "
        f"is started again. Set {RESUME}: "
        f"{scope.pod_id}, or spec.state Stopped and then Running, to start it",
        steady=True,
    )


def keep_ended(scope: Scope) -> Step | None:
    """An end stays ended until `resume` names the pod, or `state` was seen Stopped and then Running."""
    ended = scope.status.ended
    if ended is None:
        return None
    resumed = ended.pod_id is not None and resume_asked(scope, ended.pod_id)
    if scope.spec.state is PodState.STOPPED:
        if ended.reason != STOPPED_BY_STATE:
            # from here on a change back to Running is the person's word that the end is over
            scope.put(ended=ended.model_copy(update={"reason": STOPPED_BY_STATE}))
        return None
    if ended.reason == STOPPED_BY_STATE or resumed:
        return _lift(scope)
    if scope.presence in (Presence.NONE, Presence.GONE):
        return Wait(
            Reason.TERMINATED_OUTSIDE if ended.act is EndedAct.OUTSIDE else Reason.STOPPED_BY_ORDER,
            f"pod {ended.pod_id} ended ({ended.reason}) and stays ended: nothing is created. Set {RESUME}: "
            f"{ended.pod_id}, or spec.state Stopped and then Running, to have a new one; nothing bills",
            steady=True,
        )
    if ended.act is EndedAct.STOP and ended.pod_id == scope.pod_id and not _exited(scope):
        if _started_since(scope, ended):
            # somebody started it outside after our stop: that is a person's word, and stopping it again would undo it
            scope.put(ended=None)
            return None
        return stop(scope, _permitted_as(scope), ended.reason or "ordered")
    if _exited(scope):
        return _stopped(scope, ended.reason or "ordered")
    return steady(scope, ended.reason or "ordered")


def _lift(scope: Scope) -> Step | None:
    """The end is over. A stop that is still on its way is waited for: what is EXITED then was stopped by us."""
    attempt, pod = scope.status.attempt, scope.pod
    under_way = attempt is not None and attempt.intent is AttemptIntent.STOP and pod is not None and not _exited(scope)
    if under_way and scope.presence is Presence.PRESENT and attempt is not None and attempt.intent_time is not None:
        due = attempt.intent_time + scope.policy.order_patience
        if scope.now < due:
            scope.wake_in(scope.policy.observe_every)
            return Wait(Reason.STOPPING, f"pod {scope.pod_id} is stopping; then it is started", until=due)
        scope.put_attempt(intent=AttemptIntent.NONE, intent_time=None, drained=None)
    scope.put(ended=None)
    return None


def _permitted_as(scope: Scope) -> GateReason:
    """A repeated stop is asked for under the reason of its first receipt: a wedge's stop needs no approval, either."""
    receipt = scope.status.receipt
    same = receipt is not None and receipt.pod_id == scope.pod_id and receipt.reason == GateReason.STOP
    return GateReason.STOP if same else GateReason.EXPIRE


def resume_asked(scope: Scope, pod_id: str) -> bool:
    """`gpupod.dev/resume` names this pod and was not acted on yet: an old annotation must not start it again."""
    attempt = scope.status.attempt
    spent = attempt is not None and attempt.pod_id == pod_id and bool(attempt.resumed)
    return scope.identity.annotations.get(RESUME) == pod_id and not spent


def forget_resume(scope: Scope) -> None:
    """The annotation is gone or names another pod: a new one counts again."""
    attempt = scope.status.attempt
    if attempt is not None and attempt.resumed and scope.identity.annotations.get(RESUME) != attempt.pod_id:
        scope.put_attempt(resumed=None)


def _exited(scope: Scope) -> bool:
    return scope.pod is not None and scope.pod.state is ProviderState.EXITED


def _started_since(scope: Scope, ended: Ended) -> bool:
    pod = scope.pod
    if pod is None or pod.started_at is None or ended.started_at is None:
        return False
    return pod.started_at > ended.started_at


def start(scope: Scope) -> Step:
    """A paid act: start the stopped pod of this object on its host. A full host is waited for, bounded."""
    attempt, pod = scope.status.attempt, scope.pod
    assert attempt is not None
    if not scope.spec.spend.allow_paid:
        scope.condition("SpendAllowed", False, Reason.NO_COMPUTE_AVAILABLE, "spend.allowPaid is false")
        scope.put(ended=scope.before.ended)  # lifted when the start is made, or the person's word would be lost
        return Wait(
            Reason.NO_COMPUTE_AVAILABLE,
            f"spend.allowPaid is false: pod {scope.pod_id} is not started. Set it to true to go on",
            steady=True,
        )
    backoff = attempt.backoff
    if backoff is not None and backoff.until is not None and scope.now < backoff.until:
        scope.wake_at(backoff.until)
        return _start_waits(scope, attempt, backoff.until)
    handle = permission.owned(scope, pod)
    if not isinstance(handle, OwnedPod):
        return handle
    scope.put_attempt(
        cause=attempt.cause if attempt.cause is AttemptCause.ADOPT else AttemptCause.START,
        intent=AttemptIntent.START,
        intent_time=scope.now,
        start_requested_at=scope.now,
        restarted=True,
        resumed=scope.identity.annotations.get(RESUME) == scope.pod_id or None,
        generation=scope.identity.generation,
    )
    scope.put(endpoint=None, probe=None)
    return Act(StartPod(handle, "spec.state is Running"), Reason.STARTING, f"starting pod {handle.id}")


def _start_waits(scope: Scope, attempt: Attempt, until: datetime) -> Wait:
    refused = attempt.refused
    reason = reason_of(refused.failure) if refused is not None else Reason.ACT_FAILED
    if refused is not None and reason is not Reason.ACT_FAILED:
        return Wait(
            reason,
            f"RunPod refuses to start pod {scope.pod_id}: {words(refused)}. It is asked again at {until:%H:%M:%S}Z; "
            f"{REMEDIES[reason]}",
            until=until,
            stalled=reason in FOR_A_PERSON,
        )
    return Wait(
        Reason.START_REFUSED,
        f"the host of pod {scope.pod_id} has no free GPU: it stays stopped and is asked again at {until:%H:%M:%S}Z. "
        f"Set gpupod.dev/migrate: {scope.pod_id} to move it instead",
        until=until,
    )
