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
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiUnavailable
from gpupod_operator.runtime.cells import pass_cell
from gpupod_operator.runtime.loop import Passed
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator.cells")


def register(registry: kopf.OperatorRegistry, world: World) -> None:
    """Declare the hook on this registry."""
    tasks: dict[str, asyncio.Task[None]] = {}

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
            task = tasks[uid] = asyncio.create_task(_loop(world, slot), name=f"cell-{'/'.join(key)}")
            task.add_done_callback(lambda _: tasks.pop(uid, None))

    @kopf.on.cleanup(registry=registry, id="end-cells")
    async def end(**_: Any) -> None:
        for task in list(tasks.values()):
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def _loop(world: World, slot: Slot) -> None:
    while not slot.gone:
        slot.wake.clear()
        async with slot.lock:
            passed = await _guarded(world, slot)
        if passed.vanished or passed.release:
            await _forget(world, slot)
            world.cell_slots.close(slot)
            return
        await woken(slot, None, passed.again)


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
