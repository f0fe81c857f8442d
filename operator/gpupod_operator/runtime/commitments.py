"""What every object uses or was promised under the ceilings, kept up to date object by object.

The decision to create or start is made on what all others use, and takes effect some awaits later; so a promise is
taken in the same moment as the decision, and stands until the intent is committed and speaks for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpupod_operator.api.phases import AttemptIntent
from gpupod_operator.api.policies import PodState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.provider import Inventory, ProviderState
from gpupod_operator.core.room import REPLACING, Ceilings, Exceeded, Room, exceeded
from gpupod_operator.runtime.store import Key

WAITING = {str(r) for r in (Reason.ACCOUNT_CEILING, Reason.NAMESPACE_CEILING, Reason.POD_CEILING, Reason.CEILING_QUEUE)}
WOKEN = 8
_ENDED = (str(ProviderState.EXITED), str(ProviderState.TERMINATED))


@dataclass(frozen=True, slots=True)
class Commitment:
    """`active`: a pod runs for it, is on its way, or is being replaced. `price` in USD per hour."""

    name: str
    namespace: str
    account: str | None
    age: tuple[str, str]
    price: Decimal
    pod_id: str | None
    active: bool
    waits: str | None = None
    """The reason, while it waits for room and could be given it."""


class Commitments:
    """Fed with every committed GpuPod, by uid."""

    def __init__(self, ceilings: Ceilings) -> None:
        self.ceilings = ceilings
        self._held: dict[str, Commitment] = {}
        self._uids: dict[Key, str] = {}
        self._taken: dict[str, Commitment] = {}

    def changed(self, key: Key, raw: Mapping[str, Any] | None) -> frozenset[str]:
        """Take in a new version; None: the object is gone. Returns the uids that wait for the room that came free."""
        uid = self._uids.pop(key, None)
        before = self._held.pop(uid, None) if uid is not None else None
        after = None
        if raw is not None:
            uid = str(raw["metadata"]["uid"])
            after = _commitment(raw)
            self._uids[key], self._held[uid] = uid, after
        freed = before is not None and before.active and (after is None or not after.active)
        return self._next() if freed and self.ceilings else frozenset()

    def room(self, uid: str, namespace: str, account: str, inventory: Inventory) -> Room | None:
        """What is left to the object; None without any ceiling."""
        if not self.ceilings:
            return None
        mine = self._held.get(uid)
        others = [self._taken.get(other, held) for other, held in self._held.items() if other != uid]
        own_pod = mine.pod_id if mine is not None else None
        active = [c for c in others if c.active]
        listed = {p.id: p.cost_per_hour or Decimal(0) for p in inventory.pods.values() if p.live and p.id != own_pod}
        coming = sum(
            (c.price for c in active if c.account in (account, None) and not listed.get(c.pod_id or "")), Decimal(0)
        )
        return Room(
            self.ceilings,
            account=sum(listed.values(), Decimal(0)) + coming,
            namespace=sum((c.price for c in active if c.namespace == namespace), Decimal(0)),
            pods=len(active),
            ahead=_ahead(others, mine, namespace, account),
        )

    def take(self, uid: str, account: str, inventory: Inventory, price: Decimal | None) -> Exceeded | None:
        """Promise room at this moment, or say why there is none any more. `release` ends it."""
        mine = self._held.get(uid)
        if not self.ceilings or mine is None:
            return None
        room = self.room(uid, mine.namespace, account, inventory)
        problem = exceeded(room, price) if room is not None else None
        if problem is None:
            self._taken[uid] = Commitment(
                mine.name, mine.namespace, account, mine.age, price or Decimal(0), mine.pod_id, active=True
            )
        return problem

    def _next(self) -> frozenset[str]:
        """A few of those who wait, the oldest first; the others look again within a minute by themselves."""
        waiting = sorted((c.age, uid) for uid, c in self._held.items() if c.waits is not None)
        return frozenset(uid for _, uid in waiting[:WOKEN])

    def release(self, uid: str) -> None:
        """The intent is committed, or was not."""
        self._taken.pop(uid, None)


def _ahead(others: list[Commitment], mine: Commitment | None, namespace: str, account: str) -> str | None:
    """The oldest that waits for a ceiling that this object would use, too."""
    queue = [
        c
        for c in others
        if c.waits is not None
        and not c.active
        and (mine is None or c.age < mine.age)
        and (c.account in (account, None) if c.waits == Reason.ACCOUNT_CEILING else True)
        and (c.namespace == namespace if c.waits == Reason.NAMESPACE_CEILING else True)
        and c.waits != Reason.CEILING_QUEUE
    ]
    return min(queue, key=lambda c: c.age).name if queue else None


def _commitment(raw: Mapping[str, Any]) -> Commitment:
    metadata, status, spec = raw["metadata"], raw.get("status") or {}, raw.get("spec") or {}
    attempt, pod = status.get("attempt") or {}, status.get("pod") or {}
    pod_id = attempt.get("podId")
    intended = attempt.get("intent") in (AttemptIntent.CREATE, AttemptIntent.START)
    runs = pod_id is not None and pod.get("providerStatus") not in _ENDED
    replaced = pod_id is None and (status.get("migration") or {}).get("step") in REPLACING
    wanted = spec.get("state", PodState.RUNNING) == PodState.RUNNING and not spec.get("paused")
    return Commitment(
        name=metadata["name"],
        namespace=metadata["namespace"],
        account=(status.get("account") or {}).get("id"),
        age=(metadata["creationTimestamp"], metadata["uid"]),
        price=Decimal(attempt.get("perHour") or pod.get("costPerHour") or 0),
        pod_id=pod_id,
        active=intended or runs or replaced,
        waits=_waits(status) if wanted and not metadata.get("deletionTimestamp") else None,
    )


def _waits(status: Mapping[str, Any]) -> str | None:
    """Not one that would not fit into an empty account: it waits for a person."""
    states = {c["type"]: c for c in status.get("conditions") or []}
    allowed, stalled = states.get("SpendAllowed") or {}, states.get("Stalled") or {}
    told = allowed.get("reason") if allowed.get("status") == "False" else None
    return told if told in WAITING and stalled.get("status") != "True" else None
