"""Pods of this instance whose object does not exist: found by listing the cloud first and the cluster second.

Reports by metric and log line; this version deletes none by itself.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gpupod_operator.api.names import GPUPODS
from gpupod_operator.core.provider import ProviderPod
from gpupod_operator.ports import ApiForbidden, ApiNotFound, ApiUnavailable

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator.orphans")

READS = 2
"""Complete reads of both sides that must agree."""
AGE = timedelta(minutes=5)


def candidates(
    pods: tuple[ProviderPod, ...], uids: frozenset[str], released: frozenset[str], instance: str, now: datetime
) -> tuple[ProviderPod, ...]:
    """Live pods with our instance's stamp, old enough, whose uid no object has and whose id was not released."""
    return tuple(
        pod
        for pod in pods
        if pod.live
        and pod.stamp is not None
        and pod.stamp.instance == instance
        and pod.stamp.uid not in uids
        and pod.id not in released
        and (pod.created_at is None or now - pod.created_at > AGE)
    )


class OrphanHunter:
    """Counts how often each candidate was seen in a row."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._seen: dict[str, int] = {}
        self._reported: set[str] = set()

    async def look(self) -> tuple[ProviderPod, ...]:
        """One read of both sides. Unknown on either side concludes nothing."""
        world = self._world
        pods: list[ProviderPod] = []
        for account in world.opened():
            inventory = account.observer.inventory
            if not inventory.fresh:
                return ()
            pods.extend(inventory.pods.values())
        try:
            objects = await world.cluster.list_all(GPUPODS)
        except (ApiUnavailable, ApiForbidden, ApiNotFound):
            return ()
        uids = frozenset(o["metadata"]["uid"] for o in objects)
        released = frozenset(i for o in objects for i in ((o.get("status") or {}).get("released") or ()))
        now = world.clock.now()
        found = candidates(tuple(pods), uids, released, world.instance, now)
        self._seen = {p.id: self._seen.get(p.id, 0) + 1 for p in found}
        orphans = tuple(p for p in found if self._seen[p.id] >= READS)
        self._report(orphans)
        return orphans

    def _report(self, orphans: tuple[ProviderPod, ...]) -> None:
        self._world.metrics.orphans.clear()
        for pod in orphans:
            cost = float(pod.cost_per_hour or 0)
            self._world.metrics.orphans.labels(pod.id).set(cost)
            if pod.id not in self._reported:
                log.warning(
                    "orphan: pod %s (%s) carries this operator's stamp, no object has its uid; it bills $%.4f/h. "
                    "Terminate it in RunPod's console once you know that nobody needs it",
                    pod.id,
                    pod.name,
                    cost,
                    extra={"pod": pod.id},
                )
        self._reported = {p.id for p in orphans}

    async def run(self, stop: asyncio.Event) -> None:
        """Every ten ticks of the observer."""
        every = 10 * self._world.settings.observe_every
        while not stop.is_set():
            try:
                async with asyncio.timeout(every):
                    await stop.wait()
            except TimeoutError:
                await self.look()
