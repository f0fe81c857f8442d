"""Pods of this instance whose object does not exist: found by listing the cloud first and the cluster second.

Late ghosts of ambiguous creates, known by a nonce that their object left behind, are deleted; any other orphan is
reported by metric and log line and left to a person.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gpupod_operator.api.names import GPUPODS
from gpupod_operator.core.ownership import OwnedPod, claim
from gpupod_operator.core.provider import ProviderPod
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable, ProviderError
from gpupod_operator.runpod.accounts import Account
from gpupod_operator.runtime.fleet import Fleet

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator.orphans")

READS = 2
"""Complete reads of both sides that must agree."""
AGE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Suspects:
    """Live pods with our instance's stamp whose uid no object has: `ghosts` by a left nonce, `orphans` old enough."""

    ghosts: tuple[ProviderPod, ...]
    orphans: tuple[ProviderPod, ...]


def suspects(
    pods: tuple[ProviderPod, ...], uids: frozenset[str], fleet: Fleet, instance: str, now: datetime
) -> Suspects:
    """Pure: who is suspected on these lists. Released ids are never suspected."""
    ghosts, orphans = [], []
    for pod in pods:
        stamp = pod.stamp
        if not pod.live or stamp is None or stamp.instance != instance or stamp.uid in uids:
            continue
        left = fleet.nonces.get(stamp.nonce)
        if left is not None and left[0] == stamp.uid:
            ghosts.append(pod)
        elif pod.id not in fleet.released and (pod.created_at is None or now - pod.created_at > AGE):
            orphans.append(pod)
    return Suspects(tuple(ghosts), tuple(orphans))


class OrphanHunter:
    """Counts how often each suspect was seen in a row."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._seen: dict[str, int] = {}
        self._reported: set[str] = set()

    async def look(self) -> tuple[ProviderPod, ...]:
        """One read of both sides; the orphans that two reads agree on. Unknown on either side concludes nothing."""
        world = self._world
        found: list[tuple[Account, Suspects]] = []
        lists = [(account, account.observer.inventory) for account in world.opened()]
        if not all(inventory.fresh for _, inventory in lists):
            return ()
        try:
            objects = await world.cluster.list_all(GPUPODS)
            fleets = {account.identity.id: await world.fleet.of(account.identity.id) for account, _ in lists}
        except (ApiUnavailable, ApiForbidden, ApiNotFound, ApiConflict, ApiInvalid) as error:
            log.debug("no look for orphans now: %s", error)
            return ()
        except ValueError as error:
            log.warning("the fleet map was edited and cannot be read, no look for orphans: %s", error)
            return ()
        uids = frozenset(o["metadata"]["uid"] for o in objects)
        now = world.clock.now()
        for account, inventory in lists:
            fleet = fleets[account.identity.id]
            found.append((account, suspects(tuple(inventory.pods.values()), uids, fleet, world.instance, now)))
        every = [p.id for _, s in found for p in (*s.ghosts, *s.orphans)]
        self._seen = {i: self._seen.get(i, 0) + 1 for i in every}
        for account, them in found:
            for ghost in them.ghosts:
                await self._end_ghost(account, ghost)
        orphans = tuple(p for _, s in found for p in s.orphans if self._seen[p.id] >= READS)
        self._report(orphans)
        return orphans

    async def _end_ghost(self, account: Account, pod: ProviderPod) -> None:
        if self._seen[pod.id] < READS or pod.stamp is None or not self._world.may_act():
            return
        handle = claim(pod, instance=self._world.instance, uid=pod.stamp.uid, adopt_id=None)
        if not isinstance(handle, OwnedPod):
            return
        log.warning("deleting pod %s: a create of a deleted object landed late", pod.id, extra={"pod": pod.id})
        try:
            account.observer.expect_gone(pod.id)
            await account.provider.delete_pod(handle)
        except ProviderError as error:
            log.warning("pod %s could not be deleted, it is tried again: %s", pod.id, error, extra={"pod": pod.id})

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
