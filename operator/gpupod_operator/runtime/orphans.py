"""Pods of this instance whose object does not exist: found by listing the cloud first and the cluster second.

Late ghosts of ambiguous creates, known by a nonce that their object left behind, are deleted; so are, with
`--reap-orphans`, orphans that were never in use. Any other is reported by metric and log line and left to a person.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gpupod_operator.api.names import GPUPODS
from gpupod_operator.core.ownership import OwnedPod, claim
from gpupod_operator.core.provider import ProviderPod, Stamp
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable, ProviderError
from gpupod_operator.runpod.accounts import Account
from gpupod_operator.runtime.fleet import Fleet, config_name
from gpupod_operator.runtime.reaping import reapable

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator.orphans")

READS = 2
"""Complete reads of both sides that must agree."""
AGE = timedelta(minutes=5)
API_ERRORS = (ApiUnavailable, ApiForbidden, ApiNotFound, ApiConflict, ApiInvalid)


@dataclass(frozen=True, slots=True)
class Suspects:
    """Live pods with our instance's stamp whose uid no object has: `ghosts` by a left nonce, `orphans` old enough."""

    ghosts: tuple[ProviderPod, ...]
    orphans: tuple[ProviderPod, ...]


def suspects(
    pods: Iterable[ProviderPod],
    uids: frozenset[str],
    fleet: Fleet,
    instance: str,
    now: datetime,
    served: Callable[[Stamp], bool] = lambda _: True,
) -> Suspects:
    """Pure: who is suspected on these lists. Released ids are never suspected, whatever nonce they carry.

    `served` says whether the objects behind a stamp are ours to list: of others no absence is known.
    """
    ghosts, orphans = [], []
    for pod in pods:
        stamp = pod.stamp
        if not pod.live or stamp is None or stamp.instance != instance or stamp.uid in uids:
            continue
        if pod.id in fleet.released or not served(stamp):
            continue
        left = fleet.nonces.get(stamp.nonce)
        if left is not None and left[0] == stamp.uid:
            ghosts.append(pod)
        elif pod.created_at is None or now - pod.created_at > AGE:
            orphans.append(pod)
    return Suspects(tuple(ghosts), tuple(orphans))


@dataclass(slots=True)
class _Sight:
    """What the looks at one account have shown: how often in a row each suspect was seen, and who is an orphan."""

    seen: dict[str, int] = field(default_factory=dict)
    orphans: tuple[ProviderPod, ...] = ()


class OrphanHunter:
    """Looks at every account in use, and at the operator's own key's from the start on."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._sights: dict[str, _Sight] = {}
        self._reported: set[str] = set()
        self._own_problem = ""

    async def look(self) -> tuple[ProviderPod, ...]:
        """One read of both sides; the orphans that two reads agree on.

        Each account is judged by itself: one that cannot be read keeps what was known of it. Without the objects
        nothing is concluded.
        """
        world = self._world
        await self._open_own()
        lists = [(account, account.observer.inventory) for account in world.opened()]
        served = True
        try:
            objects = await world.list_served(GPUPODS)
        except ApiNotFound:
            # the kind itself is gone, and every object with it: what they left bills, and is told
            objects, served = (), False
        except API_ERRORS as error:
            log.debug("no look for orphans now: %s", error)
            return self._orphans()
        uids = frozenset(o["metadata"]["uid"] for o in objects)
        for account, inventory in lists:
            fleet = await self._fleet(account) if inventory.fresh else None
            if fleet is None:
                continue
            them = suspects(
                inventory.pods.values(),
                uids,
                fleet,
                world.instance,
                world.clock.now(),
                lambda s: world.serves(s.namespace),
            )
            sight = self._sights.setdefault(account.identity.id, _Sight())
            sight.seen = {p.id: sight.seen.get(p.id, 0) + 1 for p in (*them.ghosts, *them.orphans)}
            sight.orphans = tuple(p for p in them.orphans if sight.seen[p.id] >= READS)
            for ghost in them.ghosts:
                if sight.seen[ghost.id] >= READS:
                    await self._end(account, ghost, "a create of a deleted object landed late")
            if world.settings.reap_orphans and served:
                # counted in looks, as nobody vouches that our clock and the vendor's agree on an age
                old = tuple(p for p in sight.orphans if sight.seen[p.id] > AGE / self._every)
                await self._reap(account, old, fleet)
        orphans = self._orphans()
        self._report(orphans)
        return orphans

    async def run(self, stop: asyncio.Event) -> None:
        """Every ten ticks of the observer."""
        every = self._every.total_seconds()
        await self._open_own()  # its account is listed from now on, whether or not any object exists
        while not stop.is_set():
            try:
                async with asyncio.timeout(every):
                    await stop.wait()
            except TimeoutError:
                await self.look()

    @property
    def _every(self) -> timedelta:
        return timedelta(seconds=10 * self._world.settings.observe_every)

    async def _open_own(self) -> None:
        """Asked again at each look: the key may be mounted, replaced or accepted later."""
        try:
            await self._world.own_account()
        except ProviderError as error:
            if error.detail != self._own_problem:
                log.warning("the operator's own key opens no account, no look for orphans there: %s", error.detail)
            self._own_problem = error.detail
        else:
            self._own_problem = ""

    async def _fleet(self, account: Account) -> Fleet | None:
        """None when it cannot be read: then nobody of this account is suspected, as any pod may have been released."""
        try:
            return await self._world.fleet.of(account.identity.id)
        except API_ERRORS as error:
            log.debug("no look for orphans in account %s now: %s", account.identity.id, error)
        except ValueError as error:
            log.warning(
                "the fleet map %s was edited and cannot be read, no look for orphans in account %s: %s",
                config_name(account.identity.id),
                account.identity.id,
                error,
            )
        return None

    async def _reap(self, account: Account, orphans: tuple[ProviderPod, ...], fleet: Fleet) -> None:
        if fleet.reaping_since is None:
            try:
                await self._world.fleet.begin_reaping(account.identity.id, self._world.clock.now())
            except API_ERRORS as error:
                log.warning("orphans of account %s are not reaped yet: %s", account.identity.id, error)
            return
        for pod in reapable(orphans, fleet):
            await self._end(account, pod, "its object is gone and it was never in use (--reap-orphans)")

    async def _end(self, account: Account, pod: ProviderPod, why: str) -> None:
        if pod.stamp is None or not self._world.may_act():
            return
        handle = claim(pod, instance=self._world.instance, uid=pod.stamp.uid, adopt_id=None)
        if not isinstance(handle, OwnedPod):
            return
        log.warning("deleting pod %s: %s", pod.id, why, extra={"pod": pod.id})
        try:
            account.observer.expect_gone(pod.id)
            await account.provider.delete_pod(handle)
        except ProviderError as error:
            log.warning("pod %s could not be deleted, it is tried again: %s", pod.id, error, extra={"pod": pod.id})

    def _orphans(self) -> tuple[ProviderPod, ...]:
        return tuple(pod for sight in self._sights.values() for pod in sight.orphans)

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
