"""Virtual time: the event loop's, which jumps to the next deadline as soon as nobody has anything to do."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


class LoopClock:
    """For the operator (`now`) and for the simulated vendor (a call, and `sleep`). The loop begins at zero."""

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time())

    def __call__(self) -> datetime:
        return self.now()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class OwnClock(LoopClock):
    """The operator's machine may have another opinion of the time than the vendor and the API server."""

    skew = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.skew
