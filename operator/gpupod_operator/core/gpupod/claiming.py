"""Before anything is created: settle what an earlier create may have made, and take over what `spec.adopt` names."""

from __future__ import annotations

from gpupod_operator.api.conditions import ConditionType, find_condition
from gpupod_operator.api.gpupod_status import Attempt, AttemptCause, AttemptIntent
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.burn import may_land_until
from gpupod_operator.core.gpupod.scope import Ask, Scope, Step, Wait
from gpupod_operator.core.ownership import Foreign
from gpupod_operator.core.plan import Need


def settle_unknown_create(scope: Scope) -> Step | None:
    """An intent without a pod id: the create may have happened. Look on complete lists until the window is over.

    Pods found by nonce were taken over before this runs. When nothing appears the nonce is retired: a pod that shows
    up later with it is a ghost, known on any later list.
    """
    attempt = scope.status.attempt
    if attempt is None or attempt.pod_id is not None or attempt.intent is not AttemptIntent.CREATE:
        return None
    since = attempt.unknown_since or attempt.intent_time or scope.now
    if attempt.unknown_since is None:
        scope.put_attempt(unknown_since=since)
    due = since + scope.policy.create_settle
    over = scope.now >= due
    # until then the shared lists are looked through as they come; the last one must begin after the window
    inventory = scope.facts.inventory
    if over and not scope.facts.listed_now and (inventory is None or inventory.fresh):
        # while lists fail the shared one is tried anyway, and wakes everybody once it is complete
        return Ask(frozenset({Need.LIST}))
    if over and inventory is not None and inventory.fresh:
        retired = (*(attempt.retired_nonces or ()), *((attempt.nonce,) if attempt.nonce else ()))
        scope.put_attempt(
            intent=AttemptIntent.NONE,
            intent_time=None,
            unknown_since=None,
            nonce=None,
            retired_nonces=retired[-10:],
            may_land_until=may_land_until(attempt),
        )
        return None
    scope.wake_in(scope.policy.observe_every)
    return Wait(
        Reason.CREATE_UNKNOWN,
        f"the outcome of the create (nonce {attempt.nonce}) is unknown: complete lists are searched for it before "
        f"anything is created again; a pod found is taken over. It may bill meanwhile",
        until=due,
    )


def adopt(scope: Scope) -> Step | None:
    """Take over exactly the pod that `spec.adopt.podId` names. Once it was seen and is gone, it has no effect."""
    wanted = scope.adopt_id
    if wanted is None or wanted in (scope.status.spent_adoptions or ()):
        return None
    if scope.facts.rivals:
        return Wait(
            Reason.ADOPT_CONFLICT,
            f"pod {wanted} is already named by GpuPod {scope.facts.rivals[0]}: remove spec.adopt in one of them",
            stalled=True,
        )
    inventory = scope.facts.inventory
    pod = inventory.pods.get(wanted) if inventory is not None and inventory.fresh else None
    blind = inventory is not None and not inventory.fresh
    if pod is None and not blind and not scope.facts.listed_now and not _told_not_found(scope):
        return Ask(frozenset({Need.LIST}))
    if inventory is None or not inventory.fresh:
        return Wait(Reason.OBSERVATION_FAILED, f"waiting for a complete list before adopting pod {wanted}")
    if pod is None or not pod.live:
        return Wait(
            Reason.ADOPT_NOT_FOUND,
            f"no pod {wanted} is in this account: nothing is created instead. Correct spec.adopt.podId, or remove it "
            f"and give placement.candidates",
            stalled=True,
        )
    handle = scope.handle(pod)
    if isinstance(handle, Foreign):
        return Wait(Reason.ADOPT_FOREIGN, f"{handle.why}; it is not touched. Remove spec.adopt", stalled=True)
    before = scope.status.attempt
    scope.put(
        attempt=Attempt(
            id=scope.entropy[:8],
            retired_nonces=before.retired_nonces if before is not None else None,
            may_land_until=may_land_until(before),
            accrued_before=before.accrued_before if before is not None else None,
            cause=AttemptCause.ADOPT,
            reason=f"spec.adopt names pod {wanted}",
            generation=scope.identity.generation,
            intent=AttemptIntent.NONE,
            pod_id=wanted,
            created_at=min(pod.created_at or scope.now, scope.now),
            seen=True,
        ),
        spent_adoptions=(*(scope.status.spent_adoptions or ()), wanted)[-10:],
    )
    return Wait(Reason.TAKEN_OVER, f"pod {wanted} is adopted", until=scope.now, at_once=True)


def _told_not_found(scope: Scope) -> bool:
    """The spec as it stands was answered by a list of its own; from then on the shared lists will do."""
    told = find_condition(scope.before.conditions, ConditionType.STALLED)
    return (
        told is not None
        and told.reason == Reason.ADOPT_NOT_FOUND
        and told.observed_generation == scope.identity.generation
    )
