"""kopf glue for SweepCells: the watch wakes one task per cell.

No kopf daemon here: kopf's finalizer name is one for all kinds, and a cell has its own (`gpupod.dev/cell`), whose
going is a decision of the cell's loop.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import kopf

from gpupod_operator.api.names import GROUP, SWEEPCELLS, VERSION
from gpupod_operator.handlers.gpupod import woken
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable
from gpupod_operator.runtime.cells import pass_cell
from gpupod_operator.runtime.loop import Passed
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator.cells")


def register(registry: kopf.OperatorRegistry, world: World) -> None:
    """Declare the hook on this registry."""
    tasks: dict[str, asyncio.Task[None]] = {}

    def begin(slot: Slot) -> None:
        task = tasks[slot.uid] = asyncio.create_task(follow(world, slot), name=f"cell-{'/'.join(slot.key)}")
        task.add_done_callback(lambda done: over(slot.uid, done))

    def over(uid: str, done: asyncio.Task[None]) -> None:
        tasks.pop(uid, None)
        # an event may have opened the cell anew while the last words of its old loop were under way
        slot = world.cell_slots.of_uid(uid)
        if slot is not None and not done.cancelled() and done.exception() is None:
            begin(slot)

    @kopf.on.event(GROUP, VERSION, SWEEPCELLS, registry=registry, id="poke-cell")
    async def poke(event: kopf.RawEvent, **_: Any) -> None:
        raw: dict[str, Any] = dict(event["object"])
        uid, key = raw["metadata"]["uid"], (raw["metadata"]["namespace"], raw["metadata"]["name"])
        if event["type"] == "DELETED":
            world.store.remove(SWEEPCELLS, key, uid)
            slot = world.cell_slots.of_uid(uid)
            if slot is not None:
                world.cell_slots.close(slot)
            return
        changed = world.store.put(SWEEPCELLS, raw)
        slot = world.cell_slots.open(key, uid)
        if changed:  # the echo of our own write is no news
            slot.wake.set()
        if uid not in tasks:
            begin(slot)

    @kopf.on.cleanup(registry=registry, id="end-cells")
    async def end(**_: Any) -> None:
        for task in list(tasks.values()):
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def follow(world: World, slot: Slot) -> None:
    """Pass after pass over one cell, until it may go or is gone."""
    while not slot.gone:
        slot.wake.clear()
        async with slot.lock:
            passed = await _guarded(world, slot)
        if passed.release or (passed.vanished and await _really_gone(world, slot)):
            world.cell_slots.close(slot)
            break
        await woken(slot, None, timedelta(seconds=2) if passed.vanished else passed.again)
    # also for a cell whose finalizer somebody took off: its end reaches us as a DELETED or in a list
    await _forget(world, slot)


async def _really_gone(world: World, slot: Slot) -> bool:
    """Asked once more: one answer could be a mistake, and nobody would look after the cell from then on."""
    try:
        raw = await world.cluster.get(SWEEPCELLS, *slot.key)
    except ApiNotFound:
        return True
    except (ApiUnavailable, ApiForbidden):
        return False
    if raw["metadata"]["uid"] != slot.uid:
        return True
    world.store.put(SWEEPCELLS, raw)
    return False


async def _forget(world: World, slot: Slot) -> None:
    """The copy of the cell's token goes with it; one that cannot be deleted now is only logged."""
    try:
        await world.credentials.forget(slot.uid)
    except (ApiConflict, ApiForbidden, ApiInvalid, ApiUnavailable) as error:
        log.warning("the copy of the token stays: %s", error, extra={"cell": "/".join(slot.key)})


async def _guarded(world: World, slot: Slot) -> Passed:
    raw = world.store.get(SWEEPCELLS, slot.key)
    if raw is None or raw["metadata"]["uid"] != slot.uid:
        return Passed(None, vanished=True)
    slot.pass_began = world.clock.now()
    try:
        with world.metrics.reconcile_seconds.labels("sweepcell").time():
            passed = await pass_cell(world, slot, raw)
        world.metrics.reconcile_total.labels("sweepcell", "success").inc()
    except Exception:
        slot.failures += 1
        world.metrics.reconcile_total.labels("sweepcell", "error").inc()
        log.exception("a cell's pass failed", extra={"cell": "/".join(slot.key)})
        return Passed(timedelta(seconds=min(2**slot.failures, 300)))
    finally:
        slot.pass_began = None
    return passed
