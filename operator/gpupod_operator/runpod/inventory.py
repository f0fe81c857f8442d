"""What one more list means for what we hold: the pure half of the observer.

Complete lists are the only ground for "gone", so they are accepted sparingly: an answer that failed changes nothing but
the state, one that lost suspiciously many pods counts only once the loss is explained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.provider import Failure, Inventory, InventoryState, ProviderPod
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.errors import IncompleteAnswer

# More than a third of the pods we know, gone at once: a key of another team, an API that lost its mind, or a massacre.
SUSPICIOUS_SHARE = 3
# The proof that a pod is gone needs at most four absences; beyond them an absent pod wakes nobody.
ABSENCES_TOLD = 4
# At 15 s a list, four hours: an id that nobody tracks is then forgotten.
ABSENCES_REMEMBERED = 960

_REASONS = {
    Failure.UNAUTHORIZED: Reason.UNAUTHORIZED,
    Failure.FORBIDDEN: Reason.FORBIDDEN,
    Failure.API_GONE: Reason.PROVIDER_API_GONE,
    Failure.THROTTLED: Reason.THROTTLED,
    Failure.UNAVAILABLE: Reason.PROVIDER_UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Change:
    """Whom an answer concerns: uids of stamps and pod ids; `everything` when the state of observation changed."""

    names: frozenset[str] = frozenset()
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a complete list is not believed yet: ids we know and miss, best witnesses first, of how many we know."""

    lost: tuple[str, ...]
    known: int

    @property
    def message(self) -> str:
        return f"the list lacks {len(self.lost)} of the {self.known} pods that are known and were not just deleted"


def unlisted(now: datetime) -> Inventory:
    """Before the first answer."""
    return Inventory(
        state=InventoryState.UNKNOWN,
        reason=Reason.OBSERVATION_FAILED,
        message="the account's pods were not listed yet",
        at=now,
        complete_at=None,
        sequence=0,
    )


def doubt(
    previous: Inventory, pods: Iterable[ProviderPod], tracked: frozenset[str], expected: frozenset[str]
) -> Doubt | None:
    """Whether a complete list may be believed as it stands.

    Known are the live pods of the last complete list and the tracked ids that no complete list has missed yet, but none
    in `expected`, whose end was ordered.
    """
    listed = {pod.id for pod in pods}
    live = {pod.id for pod in previous.pods.values() if pod.live}
    waited_for = {pod_id for pod_id in tracked if pod_id not in previous.absent}
    known = (live | waited_for) - expected
    lost = known - listed
    if not lost or (listed and len(lost) * SUSPICIOUS_SHARE <= len(known)):
        return None
    # A pod that we saw ourselves is a better witness than an id from a status.
    return Doubt(tuple(sorted(lost, key=lambda pod_id: (pod_id not in live, pod_id))), len(known))


def failed(previous: Inventory, error: ProviderError, now: datetime) -> tuple[Inventory, Change]:
    """No answer, or less than a whole one: unknown. The pods of the last complete list are kept."""
    reason = Reason.OBSERVATION_FAILED
    if not isinstance(error, IncompleteAnswer):
        reason = _REASONS.get(error.failure, Reason.OBSERVATION_FAILED)
    return _told(previous, InventoryState.UNKNOWN, reason, f"the account's pods cannot be listed: {error.detail}", now)


def doubted(previous: Inventory, message: str, now: datetime) -> tuple[Inventory, Change]:
    """A complete list whose losses are not explained: as unknown, under its own name."""
    return _told(previous, InventoryState.SUSPECT, Reason.OBSERVATION_SUSPECT, message, now)


def absorb(
    previous: Inventory, pods: Iterable[ProviderPod], tracked: frozenset[str], now: datetime
) -> tuple[Inventory, Change]:
    """A complete list that is believed. `tracked` are the ids that were asked about before the list began."""
    listed = {pod.id: pod for pod in pods}
    watched = previous.seen | tracked | previous.absent.keys()
    absent = {pod_id: previous.absent.get(pod_id, 0) + 1 for pod_id in watched if pod_id not in listed}
    forgotten = {pod_id for pod_id, times in absent.items() if times > ABSENCES_REMEMBERED and pod_id not in tracked}
    inventory = Inventory(
        state=InventoryState.COMPLETE,
        reason=Reason.OBSERVED,
        message="the account's pods are listed completely",
        at=now,
        complete_at=now,
        sequence=previous.sequence + 1,
        pods=listed,
        absent={pod_id: times for pod_id, times in absent.items() if pod_id not in forgotten},
        seen=(previous.seen | listed.keys()) - forgotten,
    )
    names = _changed(previous.pods, listed)
    names |= {pod_id for pod_id, times in absent.items() if times <= ABSENCES_TOLD}
    return inventory, Change(frozenset(names), everything=previous.state is not InventoryState.COMPLETE)


def _told(
    previous: Inventory, state: InventoryState, reason: Reason, message: str, now: datetime
) -> tuple[Inventory, Change]:
    flipped = (previous.state, previous.reason) != (state, reason)
    return replace(previous, state=state, reason=reason, message=message, at=now), Change(everything=flipped)


def _changed(before: Mapping[str, ProviderPod], after: Mapping[str, ProviderPod]) -> set[str]:
    """Pod ids, and uids of the stamps they carry, of pods that came, went or differ."""
    names: set[str] = set()
    for pod_id in before.keys() | after.keys():
        old, new = before.get(pod_id), after.get(pod_id)
        if old == new:
            continue
        names.add(pod_id)
        names.update(pod.stamp.uid for pod in (old, new) if pod is not None and pod.stamp is not None)
    return names
