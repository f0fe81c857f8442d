"""What one object's loop remembers between passes. Nothing in here is needed after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from gpupod_operator.core.gpupod.scope import InstallTry
from gpupod_operator.core.provider import ProviderPod
from gpupod_operator.core.shell import ShellReading
from gpupod_operator.runpod.accounts import Account
from gpupod_operator.runtime.store import Key


@dataclass(slots=True)
class Slot:
    """One lock and one wake flag per object; the rest saves calls."""

    key: Key
    uid: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    sequence: int = -1
    """The complete list that the last pass saw."""
    reading: ShellReading | None = None
    reading_of: tuple[str, str, int] | None = None
    """Pod id, host and port that `reading` is of: another endpoint makes it void."""
    recent_pod: ProviderPod | None = None
    account: Account | None = None
    """As the last pass opened it: bound to exactly the object's key."""
    pod_id: str | None = None
    """The recorded pod, by which the observer may name a change."""
    pass_began: datetime | None = None
    failures: int = 0
    gone: bool = False
    sentence: str = ""
    """The last logged sentence: a line is logged when it changes."""
    ghost_deletes: dict[str, datetime] = field(default_factory=dict)
    install: InstallTry | None = None
    hub_checked: dict[str, datetime] = field(default_factory=dict)


class Slots:
    """Slots by object uid."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Slot] = {}
        self._by_key: dict[Key, Slot] = {}
        self._by_pod: dict[str, Slot] = {}

    def open(self, key: Key, uid: str) -> Slot:
        """The object's slot, made on first sight."""
        slot = self._by_uid.get(uid)
        if slot is None:
            slot = self._by_uid[uid] = Slot(key, uid)
            self._by_key[key] = slot
        return slot

    def of_uid(self, uid: str) -> Slot | None:
        return self._by_uid.get(uid)

    def of_key(self, key: Key) -> Slot | None:
        return self._by_key.get(key)

    def close(self, slot: Slot) -> None:
        """The object is gone."""
        slot.gone = True
        slot.wake.set()
        self._by_uid.pop(slot.uid, None)
        self.bind(slot, None)
        if self._by_key.get(slot.key) is slot:
            del self._by_key[slot.key]

    def bind(self, slot: Slot, pod_id: str | None) -> None:
        """Which pod the object has now: an adopted pod carries no stamp and is named by its id alone."""
        if slot.pod_id == pod_id:
            return
        if slot.pod_id is not None and self._by_pod.get(slot.pod_id) is slot:
            del self._by_pod[slot.pod_id]
        slot.pod_id = pod_id
        if pod_id is not None:
            self._by_pod[pod_id] = slot

    def wake(self, names: frozenset[str] | None) -> None:
        """Wake the objects that these uids and pod ids name, or every one."""
        if names is None:
            targets = list(self._by_uid.values())
        else:
            targets = [s for n in names if (s := self._by_uid.get(n) or self._by_pod.get(n)) is not None]
        for slot in targets:
            slot.wake.set()

    def __iter__(self) -> Iterator[Slot]:
        return iter(list(self._by_uid.values()))

    def __len__(self) -> int:
        return len(self._by_uid)
