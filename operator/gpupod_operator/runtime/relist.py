"""Objects whose end the watch did not show: found by listing, and proven by asking for each one.

A watch that is begun anew after it expired shows what is there; what went meanwhile it does not tell.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from gpupod_operator.api.names import GPUPODS, SWEEPCELLS
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable
from gpupod_operator.runtime.store import Key, key_of

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator")

EVERY = 300.0
"""Seconds. Two lists of pages of 500; our finalizers make such an end rare, as they hold an object until we know."""
API_ERRORS = (ApiUnavailable, ApiForbidden, ApiNotFound, ApiConflict, ApiInvalid)


class Relist:
    """Takes out of the store what the API server does not have any more, and wakes whoever still looks after it."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def run(self, stop: asyncio.Event) -> None:
        """Every five minutes; the start has just listed."""
        while not stop.is_set():
            try:
                async with asyncio.timeout(EVERY):
                    await stop.wait()
            except TimeoutError:
                await self.look()

    async def look(self) -> None:
        """List each kind once. A list that fails concludes nothing."""
        for plural in (SWEEPCELLS, GPUPODS):
            try:
                await self._look(plural)
            except API_ERRORS as error:
                log.debug("%s are not compared with a list now: %s", plural, error)

    async def _look(self, plural: str) -> None:
        store = self._world.store
        # before the list, which lacks what is made while it is under way
        held = {key_of(raw): str(raw["metadata"]["uid"]) for raw in store.all(plural)}
        listed = {raw["metadata"]["uid"] for raw in await self._world.list_served(plural)}
        for key, uid in held.items():
            if uid not in listed and await self._gone(plural, key, uid):
                log.info("gone without a word of the watch", extra={"object": "/".join(key)})
                store.remove(plural, key, uid)
        for slot in self._world.cell_slots if plural == SWEEPCELLS else self._world.slots:
            now = store.get(plural, slot.key)
            if now is None or now["metadata"]["uid"] != slot.uid:
                slot.wake.set()  # its loop finds that the object is gone, and ends as it does after any end

    async def _gone(self, plural: str, key: Key, uid: str) -> bool:
        """A second answer: nobody is looked after any more on one alone."""
        try:
            found = await self._world.cluster.get(plural, *key)
        except ApiNotFound:
            return True
        return bool(found["metadata"]["uid"] != uid)
