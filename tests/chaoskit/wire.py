"""The watch between the objects and an operator: for a minute it may repeat, reorder or lose what it tells."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from chaoskit.points import Mishap

Raw = dict[str, Any]
LENGTH = 60.0
"""Seconds that a mishap of the watch goes on."""
LATE = 3.0
AGAIN = (0.0, 1.0, 20.0)
"""When a repeated event comes once more. Much has happened to the object by the last of them."""


class Wire:
    """`deliver(plural, kind, raw)` tells the watchers of now, whoever they are; `listed` is what a list shows."""

    def __init__(
        self, deliver: Callable[[str, str, Raw], None], listed: Callable[[], Iterable[tuple[str, Raw]]]
    ) -> None:
        self._deliver = deliver
        self._listed = listed
        self._mishap: Mishap | None = None
        self._until = 0.0
        self._odd = False
        self.played: Counter[Mishap] = Counter()
        """Events that were repeated, told late, or lost."""

    def begin(self, mishap: Mishap) -> None:
        """A mishap of the watch, from now on for a minute."""
        loop = asyncio.get_running_loop()
        self._mishap, self._until = mishap, loop.time() + LENGTH
        if mishap is Mishap.DEAF:
            loop.call_at(self._until, self._relist)

    def tell(self, plural: str, kind: str, raw: Raw) -> None:
        """One change of one object."""
        mishap = self._mishap
        if mishap is None or asyncio.get_running_loop().time() >= self._until:
            self._deliver(plural, kind, raw)
            return
        if mishap is Mishap.DEAF:
            self.played[mishap] += 1
        elif mishap is Mishap.REORDERED and not self._odd:
            self._odd = True
            self._later(LATE, mishap, plural, kind, raw)
        else:
            self._odd = False
            self._deliver(plural, kind, raw)
            for delay in AGAIN if mishap is Mishap.REPEATED else ():
                self._later(delay, mishap, plural, kind, raw)

    def _later(self, delay: float, mishap: Mishap, plural: str, kind: str, raw: Raw) -> None:
        self.played[mishap] += 1
        asyncio.get_running_loop().call_later(delay, self._deliver, plural, kind, raw)

    def _relist(self) -> None:
        """A watch that expired (410) is begun anew with a list: it shows what is there, and not what went."""
        for plural, raw in tuple(self._listed()):
            self._deliver(plural, "ADDED", raw)
