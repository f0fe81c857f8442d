"""The Hub in memory: what a test put there."""

from __future__ import annotations

from chaoskit.clock import LoopClock
from gpupod_operator.core.artifacts import HubCommit, HubDestination, HubListing


class EmptyHub:
    """Nothing is on it."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock

    async def list_prefix(self, destination: HubDestination, token: str | None) -> HubListing:
        return HubListing(head="0" * 40, at=self._clock.now(), files={}, manifest=None)

    async def commits(
        self, destination: HubDestination, token: str | None, limit: int = 50, wanted: frozenset[str] = frozenset()
    ) -> tuple[HubCommit, ...]:
        return ()

    async def check_write(self, destination: HubDestination, token: str | None) -> None:
        return
