"""What one object's loop remembers between passes. Nothing in here is needed after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from gpupod_operator.core.provider import ProviderPod
from gpupod_operator.core.shell import ShellReading
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
    account_id: str | None = None
    pass_began: datetime | None = None
    failures: int = 0
    gone: bool = False
    sentence: str = ""
    """The last logged sentence: a line is logged when it changes."""
    hub_checked: dict[str, datetime] = field(default_factory=dict)


class Slots:
    """Slots by object uid."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Slot] = {}
        self._by_key: dict[Key, Slot] = {}

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
        if self._by_key.get(slot.key) is slot:
            del self._by_key[slot.key]

    def wake(self, uids: frozenset[str] | None) -> None:
        """Wake these objects, or every one."""
        targets = self._by_uid.values() if uids is None else [s for u in uids if (s := self._by_uid.get(u))]
        for slot in list(targets):
            slot.wake.set()

    def __iter__(self) -> Iterator[Slot]:
        return iter(list(self._by_uid.values()))

    def __len__(self) -> int:
        return len(self._by_uid)
