"""Pods that carry our stamp beside the recorded one: ghosts go, a live pod of an older status is taken over."""

from __future__ import annotations

from datetime import datetime

from gpupod_operator.api.gpupod_status import Attempt, AttemptCause, AttemptIntent
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.burn import may_land_until
from gpupod_operator.core.gpupod.migration import delete_again_after
from gpupod_operator.core.gpupod.scope import Act, Ask, Presence, Scope, Step, Wait
from gpupod_operator.core.gpupod.spend import charge
from gpupod_operator.core.known import Known
from gpupod_operator.core.ownership import OwnedPod
from gpupod_operator.core.plan import DeletePod, Need
from gpupod_operator.core.provider import ProviderPod


def reconcile_identity(scope: Scope) -> Step | None:
    """At most one live pod with our uid stamp (law 6). Acts on complete lists only."""
    inventory = scope.facts.inventory
    if inventory is None or not inventory.fresh:
        return None
    ours = inventory.of_uid(scope.identity.uid)
    attempt = scope.status.attempt
    released = scope.status.released or ()
    # a cloned cluster has the same uids: only the stamp of this very instance makes a pod ours
    others = tuple(
        p for p in ours if p.id != scope.pod_id and p.id not in released and isinstance(scope.handle(p), OwnedPod)
    )
    mine = _really_ours(scope, others)
    if mine is not None:
        return _take_over(scope, mine, f"status names pod {scope.pod_id}, which is somebody else's")
    strange: list[ProviderPod] = []
    ghosts = [p for p in others if _is_ghost(scope, p)]
    due = next((p for p in ghosts if _delete_due(scope, p)), None)
    if due is not None:
        return _delete_ghost(scope, due)
    for pod in (p for p in others if p not in ghosts):
        if _twin_of_record(scope, pod):
            scope.wake_in(scope.policy.observe_every)  # which of the two is the ghost shows once the recorded one does
            continue
        if _answers_open_create(scope, pod):
            return _take_over(scope, pod, "it answers the create whose outcome was unknown")
        strange.append(pod)
    if not strange:
        return _wait_for_ghosts(scope, ghosts)
    if attempt is not None and attempt.pod_id is not None and scope.presence is not Presence.GONE:
        names = ", ".join(f"{p.id} ({p.stamp.nonce if p.stamp else '?'})" for p in strange)
        return Wait(
            Reason.DUPLICATE_PODS,
            f"pod {attempt.pod_id} is recorded, but {names} also carry this object's stamp with a nonce that is not on "
            f"record; nothing is touched. Terminate the pod you do not want, or name the right one in spec.adopt.podId",
            stalled=True,
        )
    if len(strange) > 1:
        names = ", ".join(p.id for p in strange)
        return Wait(
            Reason.DUPLICATE_PODS,
            f"status records no live pod, but {names} carry this object's stamp; nothing is touched. Terminate all but "
            f"one of them and the rest is taken over",
            stalled=True,
        )
    return _take_over(scope, strange[0], "status is older than the world: this live pod carries our stamp")


def _really_ours(scope: Scope, others: tuple[ProviderPod, ...]) -> ProviderPod | None:
    """Status was edited by hand: the recorded pod is not ours, and the one of its nonce is no ghost beside it."""
    attempt, recorded = scope.status.attempt, _recorded(scope)
    if attempt is None or recorded is None or isinstance(scope.handle(recorded), OwnedPod):
        return None
    made = [p for p in others if p.stamp is not None and p.stamp.nonce == attempt.nonce]
    return made[0] if len(made) == 1 else None


def _is_ghost(scope: Scope, pod: ProviderPod) -> bool:
    attempt = scope.status.attempt
    if attempt is None or pod.stamp is None:
        return False
    if pod.stamp.nonce in (attempt.retired_nonces or ()):
        return True
    recorded = _recorded(scope)
    known = scope.presence is Presence.GONE or (recorded is not None and isinstance(scope.handle(recorded), OwnedPod))
    return _twin_of_record(scope, pod) and known


def _twin_of_record(scope: Scope, pod: ProviderPod) -> bool:
    """The create that made the recorded pod made this one, too: one of them is a ghost."""
    attempt = scope.status.attempt
    same = attempt is not None and pod.stamp is not None and pod.stamp.nonce == attempt.nonce
    return same and attempt is not None and attempt.pod_id is not None


def _recorded(scope: Scope) -> ProviderPod | None:
    """The pod that status names, as the list or our own create's answer shows it."""
    inventory, recent = scope.facts.inventory, scope.facts.recent_pod
    if inventory is None or scope.pod_id is None:
        return None
    own = recent if recent is not None and recent.id == scope.pod_id else None
    return inventory.pods.get(scope.pod_id) or own


def _delete_due(scope: Scope, pod: ProviderPod) -> bool:
    """Not ordered by this process yet, or so long ago that it should be off the lists."""
    ordered = scope.facts.ghost_deletes.get(pod.id)
    return ordered is None or scope.now - ordered > delete_again_after(scope)


def _wait_for_ghosts(scope: Scope, ghosts: list[ProviderPod]) -> Step | None:
    """Nothing new is paid for beside a ghost that will not go; a pod that is there is looked after all the same."""
    if not ghosts:
        return None
    scope.wake_in(scope.policy.observe_every)
    if scope.pod_id is not None and scope.presence is not Presence.GONE:
        return None
    names = ", ".join(p.id for p in ghosts)
    return Wait(
        Reason.GHOST_FOUND,
        f"pod {names}, the late result of a create whose outcome was unknown, was deleted and is still listed: it "
        f"bills, and nothing is created until it is gone",
    )


def _answers_open_create(scope: Scope, pod: ProviderPod) -> bool:
    attempt = scope.status.attempt
    return (
        attempt is not None
        and attempt.pod_id is None
        and attempt.nonce is not None
        and pod.stamp is not None
        and pod.stamp.nonce == attempt.nonce
    )


def _delete_ghost(scope: Scope, pod: ProviderPod) -> Step:
    if not isinstance(scope.facts.account, Known):
        return Ask(frozenset({Need.ACCOUNT}))
    handle = scope.handle(pod)
    if not isinstance(handle, OwnedPod):
        return Wait(Reason.DUPLICATE_PODS, handle.why, stalled=True)
    charge(scope, pod, _billing_since(scope, pod))
    return Act(
        DeletePod(handle, "ghost of an ambiguous create", ghost=True),
        Reason.GHOST_FOUND,
        f"deleting pod {pod.id}: it is the late result of a create whose outcome was unknown (nonce "
        f"{pod.stamp.nonce if pod.stamp else '?'}), no workload ever ran on it",
    )


def _billing_since(scope: Scope, ghost: ProviderPod) -> datetime:
    """Since when the ghost bills and was not charged for yet: rather too early than too late."""
    charged = scope.facts.ghost_deletes.get(ghost.id)
    attempt = scope.status.attempt
    ordered = attempt.unknown_since if attempt is not None else None
    return charged or min(t for t in (ordered, ghost.created_at, scope.now) if t is not None)


def _take_over(scope: Scope, pod: ProviderPod, why: str) -> Step | None:
    """Record the pod as the attempt's. Goes on to the ordinary checks of price and count in the same pass."""
    before = scope.status.attempt
    known = before is not None and pod.stamp is not None and pod.stamp.nonce == before.nonce
    base = before if known and before is not None else _foreign_attempt(scope, pod)
    if not known:
        # what is on record is of another pod
        scope.put(pod=None, endpoint=None, probe=None, episode=None, workload=None, approval=None)
    scope.put(
        attempt=base.model_copy(
            update={
                "pod_id": pod.id,
                "intent": AttemptIntent.NONE,
                "intent_time": None,
                # stays on record: another pod of the same open create may still appear
                "unknown_since": (base.unknown_since or base.intent_time or scope.now) if known else None,
                "backoff": None,
                "refusals": None,
                "waiting_since": None,
                "created_at": _created_at(scope, pod, base if known else None),
                "seen": True,
                # a pod that an older status does not know was not made by a create of this attempt: as if adopted
                "taken_over": not known or None,
            }
        )
    )
    scope.presence = Presence.PRESENT
    scope.pod = pod
    scope.condition("Provisioned", True, Reason.TAKEN_OVER, f"pod {pod.id} is taken over: {why}")
    return None


def _created_at(scope: Scope, pod: ProviderPod, ordered: Attempt | None) -> datetime:
    """By our own clock, which all deadlines are counted by: not before our order, and never in the future.

    RunPod's clock may be off by any amount, and a pod that is an hour old at once would be moved or ended at once.
    """
    since = (ordered.intent_time or ordered.unknown_since) if ordered is not None else None
    told = pod.created_at or scope.now
    return min(max(told, since) if since is not None else told, scope.now)


def _foreign_attempt(scope: Scope, pod: ProviderPod) -> Attempt:
    before = scope.status.attempt
    retired: tuple[str, ...] = ()
    if before is not None:
        # the nonce on record may still belong to a create whose outcome is open
        retired = (*(before.retired_nonces or ()), *((before.nonce,) if before.nonce else ()))[-10:]
    return Attempt(
        id=scope.entropy[:8],
        nonce=pod.stamp.nonce if pod.stamp is not None else None,
        retired_nonces=retired,
        may_land_until=may_land_until(before),
        accrued_before=before.accrued_before if before is not None else None,
        cause=AttemptCause.ADOPT,
        reason="taken over by its stamp",
        generation=scope.identity.generation,
    )
