"""kopf glue for GpuPods: wake, loop, teardown. No business decision in here."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import kopf

from gpupod_operator.api.names import GPUPOD_FINALIZER, GPUPODS, GROUP, VERSION
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable
from gpupod_operator.runtime.loop import Passed, pass_once
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator.loop")

TEARDOWN_LOOK = timedelta(seconds=15)
"""How often a deletion in progress reads its object: one GET, no write."""

UNHELD_LOOK = timedelta(seconds=5)
"""The watch tells of the finalizer; this is for a watch that does not."""

LONGEST = timedelta(minutes=10)
"""Nobody sleeps longer than this without looking."""


def register(registry: kopf.OperatorRegistry, world: World) -> None:
    """Declare the three hooks on this registry."""

    @kopf.on.event(GROUP, VERSION, GPUPODS, registry=registry, id="poke")
    async def poke(event: kopf.RawEvent, **_: Any) -> None:
        saw(world, event)

    @kopf.daemon(GROUP, VERSION, GPUPODS, registry=registry, id="run", cancellation_backoff=10, cancellation_timeout=5)
    async def run(body: kopf.Body, stopped: kopf.DaemonStopped, **_: Any) -> None:
        slot = world.slots.open((body.meta["namespace"], body.meta["name"]), body.meta["uid"])
        while not stopped and not slot.gone:
            slot.wake.clear()  # before reading, so that no wake-up is lost
            async with slot.lock:
                if stopped or _deleting(world, slot):
                    return
                # kopf starts this before its patch with the finalizer: nothing is rented for an object that could go
                # without us, and a status written now would only be refused (409) because of that patch
                passed = await guarded(world, slot) if _held(world, slot) else Passed(UNHELD_LOOK)
            if passed.vanished and await really_gone(world, slot):
                world.slots.close(slot)
                return
            await woken(slot, stopped, pause_after(passed, None))

    @kopf.on.delete(GROUP, VERSION, GPUPODS, registry=registry, id="teardown")
    async def teardown(body: kopf.Body, **_: Any) -> None:
        slot = world.slots.open((body.meta["namespace"], body.meta["name"]), body.meta["uid"])
        while not slot.gone:
            slot.wake.clear()
            async with slot.lock:
                # kopf runs nothing else for an object while its delete handler runs, so the watch shows no edits
                # (abandon-data, paused) here: read the object anew in each pass
                passed = await reread(world, slot) or await guarded(world, slot)
            if (passed.vanished and await really_gone(world, slot)) or (passed.release and await settled(world, slot)):
                world.slots.close(slot)
                return
            await woken(slot, None, pause_after(passed, TEARDOWN_LOOK))


def pause_after(passed: Passed, longest: timedelta | None) -> timedelta | None:
    """How long to sleep; None: until woken. Zero is no "nothing said", but "at once"."""
    wanted = timedelta(seconds=2) if passed.vanished else passed.again
    if wanted is None or longest is None:
        return longest if wanted is None else wanted
    return min(wanted, longest)


async def reread(world: World, slot: Slot) -> Passed | None:
    """The object as it is now goes into the store; a Passed only when it is gone or cannot be read."""
    try:
        raw = await world.cluster.get(GPUPODS, *slot.key)
    except ApiNotFound:
        return Passed(None, vanished=True)
    except (ApiUnavailable, ApiForbidden):
        return Passed(timedelta(seconds=2))
    if raw["metadata"]["uid"] != slot.uid:
        return Passed(None, vanished=True)
    world.store.put(GPUPODS, raw)
    return None


async def really_gone(world: World, slot: Slot) -> bool:
    """Asked once more: an object is given up on two answers, because nobody looks after its pod afterwards."""
    gone = await reread(world, slot)
    return gone is not None and gone.vanished


async def settled(world: World, slot: Slot) -> bool:
    """What has to outlive the object is written, and its key copies are gone: now the finalizer may go."""
    raw = world.store.get(GPUPODS, slot.key)
    try:
        if raw is not None:
            opened = slot.account.identity.id if slot.account is not None else None
            await world.fleet.leave(opened, raw, world.clock.now())
        await world.credentials.forget(slot.uid)
    except (ApiUnavailable, ApiForbidden, ApiConflict, ApiInvalid, ApiNotFound, ValueError) as error:
        # ValueError: the fleet map was edited by hand and cannot be read; what is in it must not be overwritten
        log.warning("the finalizer stays for now: %s", error, extra={"object": "/".join(slot.key)})
        return False
    return True


def saw(world: World, event: kopf.RawEvent) -> None:
    """O(1): keep the newest object and wake its loop."""
    raw: dict[str, Any] = dict(event["object"])
    key = (raw["metadata"]["namespace"], raw["metadata"]["name"])
    if event["type"] == "DELETED":
        world.store.remove(GPUPODS, key, raw["metadata"]["uid"])
        slot = world.slots.of_uid(raw["metadata"]["uid"])
        if slot is not None:
            world.slots.close(slot)
        return
    changed = world.store.put(GPUPODS, raw)
    spare_kopf(event)
    if changed:
        slot = world.slots.of_uid(raw["metadata"]["uid"])
        if slot is not None:
            slot.wake.set()


def spare_kopf(event: kopf.RawEvent) -> None:
    """Leave kopf the metadata: it keeps the last event of each object for as long as the daemon runs.

    kopf itself looks at metadata alone (our diff base is null), and our hooks read the store. For a thousand objects
    the rest is a third of the memory of this process.
    """
    body: dict[str, Any] = event["object"]  # type: ignore[assignment]
    body["metadata"].pop("managedFields", None)
    body.pop("spec", None)
    body.pop("status", None)


async def guarded(world: World, slot: Slot) -> Passed:
    """A defect in one object's pass must not end its loop for good: log it, wait longer each time, go on."""
    raw = world.store.get(GPUPODS, slot.key)
    if raw is None or raw["metadata"]["uid"] != slot.uid:
        return Passed(None, vanished=True)
    try:
        with world.metrics.reconcile_seconds.labels("gpupod").time():
            passed = await pass_once(world, slot, raw)
        world.metrics.reconcile_total.labels("gpupod", "success").inc()
    except Exception:
        slot.failures += 1
        world.metrics.reconcile_total.labels("gpupod", "error").inc()
        log.exception("a pass failed; nothing was acted on after the fault", extra={"object": "/".join(slot.key)})
        return Passed(timedelta(seconds=min(2**slot.failures, 300)))
    return passed


async def woken(slot: Slot, stopped: kopf.DaemonStopped | None, again: timedelta | None) -> None:
    """Sleep until woken, stopped, or due."""
    delay = min(again if again is not None else LONGEST, LONGEST).total_seconds()
    waiters: list[asyncio.Future[Any]] = [asyncio.ensure_future(slot.wake.wait())]
    if stopped is not None:
        waiters.append(asyncio.ensure_future(_stopping(stopped)))
    try:
        await asyncio.wait(waiters, timeout=delay, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()


async def _stopping(stopped: kopf.DaemonStopped) -> None:
    await stopped.wait()


def _held(world: World, slot: Slot) -> bool:
    """Our finalizer is on the object, or the object is not there any more (which the pass finds out)."""
    raw = world.store.get(GPUPODS, slot.key)
    return raw is None or GPUPOD_FINALIZER in (raw["metadata"].get("finalizers") or ())


def _deleting(world: World, slot: Slot) -> bool:
    raw = world.store.get(GPUPODS, slot.key)
    return raw is not None and bool(raw["metadata"].get("deletionTimestamp"))
