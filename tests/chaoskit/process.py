"""One operator process in this event loop: the production world, loops and executor; kopf's part is played here."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from chaoskit.points import Killed, Mishap, Mortal
from gpupod_operator.api.names import GPUPOD_FINALIZER, GPUPODS, SWEEPCELLS
from gpupod_operator.handlers.gpupod import (
    TEARDOWN_LOOK,
    guarded,
    pause_after,
    really_gone,
    reread,
    saw,
    settled,
    woken,
)
from gpupod_operator.handlers.lifecycle import seed_store
from gpupod_operator.handlers.sweepcell import follow
from gpupod_operator.ports import ApiConflict, ApiNotFound, ApiUnavailable
from gpupod_operator.runpod.accounts import Accounts
from gpupod_operator.runtime.metrics import Metrics
from gpupod_operator.runtime.orphans import OrphanHunter
from gpupod_operator.runtime.relist import Relist
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.world import World
from podkit.hosts import TREE

if TYPE_CHECKING:
    from chaoskit.scene import Scene

_owner: contextvars.ContextVar[OperatorProcess | None] = contextvars.ContextVar("owner", default=None)


def owning_tasks(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **kw: Any) -> asyncio.Task[Any]:
    """A task factory: whatever a process starts, directly or not, ends with it."""
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **kw)
    owner = _owner.get()
    if owner is not None:
        owner.tasks.add(task)
        task.add_done_callback(owner.tasks.discard)
    return task


class OperatorProcess:
    """`died` is set at its end, wanted or not."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.tasks: set[asyncio.Task[Any]] = set()
        self.died = asyncio.Event()
        self.accounts = Accounts(
            scene.own,
            base_url=scene.sim.url,
            on_call=lambda call, *_: self.point(f"after runpod.{call}"),
            jitter=lambda: 0.5,
            permit=self._permit,
        )
        self.world = World(
            settings=scene.settings,
            clock=scene.own,
            cluster=Mortal(scene.cluster, "cluster", self.point),
            accounts=self.accounts,
            hub=Mortal(scene.hub, "hub", self.point),
            shell=Mortal(scene.hosts, "shell", self.point),
            metrics=Metrics(),
            instance=scene.instance,
            may_act=lambda: not self.died.is_set(),
            agent_tree=TREE,
            entropy=scene.entropy,
        )
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._unwatch: Any = None

    def point(self, name: str) -> None:
        """Here the process may die."""
        if self.died.is_set():
            raise Killed
        mishap = self._scene.points.passed(name)
        if mishap is Mishap.KILL:
            self.died.set()
            raise Killed
        self._scene.strike(mishap, name)

    def _permit(self) -> bool:
        self.point("before runpod write")
        return True

    def start(self) -> None:
        """Begin as the real one does after it took the Lease."""
        contextvars.copy_context().run(self._start)

    def _start(self) -> None:
        _owner.set(self)
        asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            await seed_store(self.world)
        except ApiUnavailable:
            self.died.set()  # it cannot start now and is started again
            return
        self._unwatch = self._scene.cluster.watch(self._event)
        for plural in (GPUPODS, SWEEPCELLS):
            for raw in await self._scene.cluster.list_all(plural):
                self._event(plural, "ADDED", raw)
        asyncio.get_running_loop().create_task(self.world.teller.run())
        asyncio.get_running_loop().create_task(OrphanHunter(self.world).run(asyncio.Event()))
        asyncio.get_running_loop().create_task(Relist(self.world).run(asyncio.Event()))

    async def bury(self) -> None:
        """After its death: nothing of it is left, and its connections are cut."""
        self.died.set()
        if self._unwatch is not None:
            self._unwatch()
        while self.tasks:
            left = list(self.tasks)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        with contextlib.suppress(Killed):
            await self.accounts.close()

    def _event(self, plural: str, kind: str, raw: dict[str, Any]) -> None:
        if self.died.is_set():
            return
        if plural == SWEEPCELLS:
            self._cell_event(kind, raw)
            return
        saw(self.world, {"type": kind, "object": raw})  # type: ignore[arg-type]
        uid = raw["metadata"]["uid"]
        # as kopf, which forgets an object that is DELETED and begins anew when it hears of it once more
        if kind != "DELETED" and (uid not in self._lives or self._lives[uid].done()):
            token = _owner.set(self)
            life = self._live((raw["metadata"]["namespace"], raw["metadata"]["name"]), uid)
            self._lives[uid] = asyncio.get_running_loop().create_task(life)
            _owner.reset(token)

    def _cell_event(self, kind: str, raw: dict[str, Any]) -> None:
        """kopf's part for cells, which have no daemon."""
        world, uid = self.world, raw["metadata"]["uid"]
        key = (raw["metadata"]["namespace"], raw["metadata"]["name"])
        if kind == "DELETED":
            world.store.remove(SWEEPCELLS, key, uid)
            slot = world.cell_slots.of_uid(uid)
            if slot is not None:
                world.cell_slots.close(slot)
            return
        changed = world.store.put(SWEEPCELLS, raw)
        slot = world.cell_slots.open(key, uid)
        if changed:
            slot.wake.set()
        if uid not in self._lives:
            token = _owner.set(self)
            self._lives[uid] = asyncio.get_running_loop().create_task(follow(world, slot))
            _owner.reset(token)

    async def _live(self, key: tuple[str, str], uid: str) -> None:
        """kopf's daemon and delete handler of one object, and its finalizer."""
        world = self.world
        slot = world.slots.open(key, uid)
        while not slot.gone:
            slot.wake.clear()
            raw = world.store.get(GPUPODS, key) or {"metadata": {"deletionTimestamp": "gone"}}
            deleting = bool(raw["metadata"].get("deletionTimestamp"))
            if not deleting and not await self._hold(slot, present=True):
                continue
            async with slot.lock:
                passed = (await reread(world, slot) if deleting else None) or await guarded(world, slot)
            if passed.vanished and await really_gone(world, slot):
                world.slots.close(slot)
                return
            if deleting and passed.release and await settled(world, slot) and await self._hold(slot, present=False):
                world.slots.close(slot)
                return
            await woken(slot, None, pause_after(passed, TEARDOWN_LOOK if deleting else None))

    async def _hold(self, slot: Slot, *, present: bool) -> bool:
        """Put the finalizer on or take it off; False when the object changed meanwhile."""
        try:
            raw = await self.world.cluster.get(GPUPODS, *slot.key)
            if (GPUPOD_FINALIZER in (raw["metadata"].get("finalizers") or ())) is not present:
                await self.world.cluster.set_finalizer(
                    GPUPODS,
                    *slot.key,
                    GPUPOD_FINALIZER,
                    present=present,
                    resource_version=raw["metadata"]["resourceVersion"],
                )
        except (ApiConflict, ApiUnavailable):
            await asyncio.sleep(1)
            return False
        except ApiNotFound:
            return True  # the pass finds out that it is gone, whether the watch has told it or not
        return True
