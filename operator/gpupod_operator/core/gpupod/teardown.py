"""The object is being deleted: nothing of it may go on billing, nothing unverified may be lost (laws 4 and 5)."""

from __future__ import annotations

from gpupod_operator.api.gpupod_status import AttemptIntent, Receipt
from gpupod_operator.api.policies import DeletionPolicy
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import DrainFirst, GateReason
from gpupod_operator.core.gpupod import permission
from gpupod_operator.core.gpupod.admission import bound
from gpupod_operator.core.gpupod.claiming import settle_unknown_create
from gpupod_operator.core.gpupod.draining import drain
from gpupod_operator.core.gpupod.migration import delete, delete_again_after, retire
from gpupod_operator.core.gpupod.scope import Presence, Release, Scope, Step, Wait
from gpupod_operator.core.gpupod.stopping import stop
from gpupod_operator.core.provider import ProviderState


def tear_down(scope: Scope) -> Step:
    """One step towards no pod. Never times out: a finalizer that cannot go says what holds it and what it costs."""
    if scope.spec.paused and bound(scope):
        pod = f"pod {scope.pod_id}" if scope.pod_id is not None else "a pod whose create is not settled"
        return Wait(
            Reason.PAUSED,
            f"the object is deleted and paused: {pod} stays and bills {scope.price}. Set spec.paused to "
            f"false to let the deletion go on",
            stalled=True,
        )
    unsettled = settle_unknown_create(scope)
    if unsettled is not None:
        return unsettled
    if scope.presence is Presence.GONE:
        # in the same write as the release: after a crash nothing has to be proven, nor a key to be read, again
        retire(scope, "Deleted")
    if scope.pod_id is None:
        return Release("no pod of this object exists")
    left = let_go(scope)
    if left is not None:
        return left
    if scope.spec.deletion_policy is DeletionPolicy.STOP:
        return _stop(scope)
    return _terminate(scope)


def let_go(scope: Scope) -> Release | None:
    """`deletionPolicy: Orphan` touches nothing, so it needs no key that works and no look at the pod."""
    attempt = scope.status.attempt
    settled = attempt is not None and attempt.pod_id is not None
    orphaned = scope.identity.deleting and scope.spec.deletion_policy is DeletionPolicy.ORPHAN
    if not orphaned or not settled or scope.spec.paused:
        return None
    _release_pod(scope)
    return Release(f"pod {scope.pod_id} is released by deletionPolicy Orphan and goes on billing {scope.price}")


def _terminate(scope: Scope) -> Step:
    attempt = scope.status.attempt
    assert attempt is not None
    ordered = attempt.intent is AttemptIntent.DELETE and attempt.intent_time is not None
    if ordered and attempt.intent_time is not None:
        scope.wake_in(scope.policy.observe_every)
        repeat = scope.now - attempt.intent_time > delete_again_after(scope)
        if scope.presence is not Presence.PRESENT or not repeat:
            return Wait(
                Reason.CONFIRMING_GONE,
                f"pod {scope.pod_id} was deleted; the object goes once a GET says 404 and "
                f"{scope.policy.lists_for_gone} complete lists agree. Until then it counts as billing {scope.price}",
            )
    if scope.presence is Presence.MISSING:
        scope.wake_in(scope.policy.observe_every)
        return Wait(Reason.CONFIRMING_GONE, f"pod {scope.pod_id} is missing; waiting for the proof that it is gone")
    if scope.presence is Presence.UNKNOWN:
        return Wait(
            Reason.OBSERVATION_FAILED,
            f"the account cannot be read: pod {scope.pod_id} may bill {scope.price}; nothing is deleted "
            f"on half-knowledge",
        )
    verdict = permission.ask(scope, GateReason.DELETE)
    if isinstance(verdict, DrainFirst):
        return drain(scope, verdict)
    if not isinstance(verdict, Receipt):
        return verdict
    return delete(scope, verdict, "the object is deleted")


def _stop(scope: Scope) -> Step:
    pod = scope.pod
    if scope.presence is Presence.PRESENT and pod is not None and pod.state is ProviderState.EXITED:
        # one list and one GET agree that it is stopped: two observations
        if scope.pod_id not in (scope.status.released or ()):
            _release_pod(scope)
            scope.wake_in(scope.policy.observe_every)
            return Wait(Reason.RELEASED, f"pod {scope.pod_id} is stopped and released; confirming once more")
        if scope.facts.new_list:
            return Release(f"pod {scope.pod_id} is stopped and released; its disks go on billing")
        scope.wake_in(scope.policy.observe_every)
        return Wait(Reason.RELEASED, f"pod {scope.pod_id} is stopped and released; confirming once more")
    return stop(scope, GateReason.DELETE, "the object is deleted with deletionPolicy Stop")


def _release_pod(scope: Scope) -> None:
    released = scope.status.released or ()
    if scope.pod_id is not None and scope.pod_id not in released:
        scope.put(released=(*released, scope.pod_id)[-100:])
