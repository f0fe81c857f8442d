"""Time for the simulated cloud: the real clock, or a virtual one that a test steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, runtime_checkable

#: Returns the current instant, timezone-aware UTC. Any callable of this shape drives the pure model.
Now = Callable[[], datetime]


@runtime_checkable
class Clock(Protocol):
    """A clock that can also be waited on, so that slow answers pass in the same time as everything else."""

    def __call__(self) -> datetime: ...

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` of this clock have passed."""
        ...


class SystemClock:
    """The machine's clock."""

    def __call__(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualClock:
    """A clock that moves only when told to. `sleep` returns when an `advance` reaches its end."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
        self._sleepers: list[tuple[datetime, asyncio.Future[None]]] = []

    def __call__(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> datetime:
        """Move by `seconds` (not negative), wake the sleepers whose time has come, return the new instant."""
        if seconds < 0:
            raise ValueError("a clock does not run backwards")
        self._now += timedelta(seconds=seconds)
        due = [future for at, future in self._sleepers if at <= self._now]
        self._sleepers = [(at, future) for at, future in self._sleepers if at > self._now]
        for future in due:
            if not future.done():
                future.set_result(None)
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + timedelta(seconds=seconds), future))
        await future
