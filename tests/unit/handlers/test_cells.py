"""One loop per cell: begun by the watch, ended by the cell's end, however that becomes known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import kopf
import pytest

from gpupod_operator.api.names import GPUPODS, SWEEPCELLS
from gpupod_operator.handlers import sweepcell as handlers
from gpupod_operator.ports import ApiForbidden, ApiNotFound, ApiUnavailable
from gpupod_operator.runtime.credentials import copy_name
from gpupod_operator.runtime.relist import Relist
from runtimekit.world import Kit, gpupod, sweepcell

HOME, KEY = "gpupod-system", ("ns", "c")


class Watched:
    """A kit whose cells are served; `show` is an event of the watch."""

    def __init__(self) -> None:
        self.kit = Kit()
        self.world = self.kit.world
        self.cluster = self.kit.cluster
        registry = kopf.OperatorRegistry()
        handlers.register(registry, self.world)
        self._poke = registry._watching.get_all_handlers()[0].fn
        self._end = registry._activities.get_all_handlers()[0].fn

    async def show(self, kind: str, raw: dict[str, Any]) -> None:
        await self._poke(event={"type": kind, "object": raw})

    async def serve(self, name: str = "c", uid: str = "uid-c") -> None:
        raw = self.cluster.put(SWEEPCELLS, sweepcell(name, uid=uid))
        self.cluster.secrets[HOME, copy_name(uid)] = {"hub": b"token"}
        await self.show("ADDED", raw)
        await self.until(lambda: self.cluster.objects[SWEEPCELLS]["ns", name]["status"] != {})

    async def until(self, told: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not told():
                await asyncio.sleep(0.001)

    def copied(self, uid: str = "uid-c") -> bool:
        return (HOME, copy_name(uid)) in self.cluster.secrets

    async def close(self) -> None:
        await self._end()
        await self.world.close()


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    made = Watched()
    await made.serve()
    yield made
    await made.close()
    failed = {"controller": "sweepcell", "result": "error"}
    assert not made.kit.metrics.registry.get_sample_value("controller_runtime_reconcile_total", failed)


async def test_a_cell_whose_finalizer_was_taken_off_leaves_no_copy_of_its_token(watched: Watched):
    gone = watched.cluster.objects[SWEEPCELLS].pop(KEY)
    await watched.show("DELETED", gone)
    await watched.until(lambda: not watched.copied())
    assert len(watched.world.cell_slots) == 0


async def test_a_cell_that_went_while_the_watch_was_down_is_found_by_the_list(watched: Watched):
    await watched.serve("d", "uid-d")
    pod = watched.world.slots.open(("ns", "p"), "uid-p")
    pod.wake.clear()
    del watched.cluster.objects[SWEEPCELLS][KEY]
    await Relist(watched.world).look()
    await watched.until(lambda: watched.world.cell_slots.of_uid("uid-c") is None)
    await watched.until(lambda: not watched.copied())
    assert [raw["metadata"]["name"] for raw in watched.world.store.cells_of(("ns", "p"))] == ["d"]
    assert pod.wake.is_set(), "its GpuPod has one cell less to wait for"
    assert watched.world.cell_slots.of_uid("uid-d") is not None
    assert watched.copied("uid-d")


async def test_a_cell_that_was_made_anew_under_its_name_meanwhile_ends_the_loop_of_the_old_one(watched: Watched):
    await watched.serve("c", "uid-new")
    await Relist(watched.world).look()
    await watched.until(lambda: not watched.copied("uid-c"))
    assert watched.world.cell_slots.of_uid("uid-c") is None
    assert watched.world.cell_slots.of_uid("uid-new") is not None
    assert watched.world.store.get(SWEEPCELLS, KEY)["metadata"]["uid"] == "uid-new"


@pytest.mark.parametrize("error", [ApiUnavailable("cut"), ApiForbidden("a role went"), ApiNotFound("a proxy")])
async def test_a_list_that_fails_concludes_nothing(watched: Watched, error: Exception):
    watched.cluster.down["list"] = error
    await Relist(watched.world).look()
    assert watched.world.store.get(SWEEPCELLS, KEY) is not None


async def test_a_cell_that_a_list_lacks_and_that_answers_is_kept(watched: Watched, monkeypatch: pytest.MonkeyPatch):
    async def empty(*_: object) -> tuple[dict[str, Any], ...]:
        return ()

    monkeypatch.setattr(watched.cluster, "list_all", empty)
    await Relist(watched.world).look()
    assert watched.world.store.get(SWEEPCELLS, KEY) is not None
    assert watched.copied()


async def test_one_false_404_does_not_give_a_cell_up(watched: Watched):
    slot = watched.world.cell_slots.of_uid("uid-c")
    watched.world.store.remove(SWEEPCELLS, KEY, "uid-c")  # as a pass does on a 404
    slot.wake.set()
    await watched.until(lambda: watched.world.store.get(SWEEPCELLS, KEY) is not None)
    assert watched.world.cell_slots.of_uid("uid-c") is slot
    assert watched.copied()


async def test_a_gpupod_that_went_while_the_watch_was_down_wakes_its_loop_and_leaves_the_store():
    kit = Kit()
    kit.world.store.put(GPUPODS, gpupod("a"))
    slot = kit.world.slots.open(("ns", "a"), "uid-a")
    await Relist(kit.world).look()
    assert kit.world.store.get(GPUPODS, ("ns", "a")) is None
    assert slot.wake.is_set()
    await kit.world.close()
