"""Time for the simulated Hub: the wall clock in a process of its own, a stepped one in tests."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Protocol


class HubClock(Protocol):
    """What the Hub needs of time: the present (aware, UTC) and a wait of some seconds."""

    def now(self) -> datetime:
        """The present, timezone-aware, UTC."""

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed on this clock."""


class WallClock:
    """Real time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SteppedClock:
    """Time that moves only when a test calls `step`; a `sleep` ends when the steps have passed its end."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._sleepers: list[tuple[datetime, asyncio.Event]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        woken = asyncio.Event()
        self._sleepers.append((self._now + timedelta(seconds=seconds), woken))
        await woken.wait()

    def step(self, seconds: float) -> None:
        """Move time forward and wake every sleeper whose end has come."""
        self._now += timedelta(seconds=seconds)
        due = [woken for end, woken in self._sleepers if end <= self._now]
        self._sleepers = [(end, woken) for end, woken in self._sleepers if end > self._now]
        for woken in due:
            woken.set()
