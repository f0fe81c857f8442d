"""A whole fleet whose operator is killed at once: nothing is made twice, and the vendor's quota is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import looptime
import pytest

from chaoskit.fleet import QUOTA, RESERVED, Fleet
from gpupod_operator.api.names import GPUPODS

PLENTY = {"minute": 10**5, "hour": 10**7, "day": 10**8}
"""For a fleet that is to be there soon."""
LISTS = 6
"""In one minute at one in 15 s, those of the dead process and those of the new one."""


def fleet(tmp_path: Path, count: int, quota: dict[str, int], play: Callable[[Fleet], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with Fleet(tmp_path, count, quota) as scene:
            scene.books.blind = True  # a thousand objects against a thousand bills, at each write
            scene.apply_all()
            await play(scene)

    loop = looptime.new_event_loop(start=0)
    try:
        loop.run_until_complete(whole())
    finally:
        loop.close()


@pytest.mark.parametrize(
    "count", [150, pytest.param(1000, marks=pytest.mark.soak)], ids=lambda count: f"{count}-objects"
)
def test_ready_objects_outlive_a_restart_without_a_write_or_a_create(tmp_path, count):
    async def play(scene: Fleet) -> None:
        await scene.until(scene.all_ready)
        await scene.pause(timedelta(minutes=3))
        before = {name: (raw["metadata"]["resourceVersion"]) for name, raw in scene.cluster.objects[GPUPODS].items()}
        killed = await scene.restart()
        assert scene.clock.now() - killed < timedelta(minutes=1), "all are observed again"
        await scene.pause(timedelta(minutes=3))
        assert scene.deaths == 1
        assert {n: r["metadata"]["resourceVersion"] for n, r in scene.cluster.objects[GPUPODS].items()} == before
        assert len(scene.sim.cloud.pods) == len(scene.alive()) == len(scene.names)
        assert [e for e in scene.sim.journal.mutations() if e.at >= killed] == []
        # the account is asked for once, and one list serves all
        assert all(calls.by_kind["GET pods"] <= LISTS for calls in scene.windows_since(killed))
        assert all(calls.total <= LISTS + 1 for calls in scene.windows_since(killed)), scene.windows_since(killed)

    fleet(tmp_path, count, PLENTY, play)


@pytest.mark.parametrize(
    "count", [150, pytest.param(1000, marks=pytest.mark.soak)], ids=lambda count: f"{count}-objects"
)
@pytest.mark.parametrize(
    "quota", [pytest.param(QUOTA, id="documented-quota"), pytest.param(PLENTY, id="no-quota", marks=pytest.mark.soak)]
)
def test_objects_whose_creates_were_under_way_have_one_pod_each_afterwards(tmp_path, quota, count):
    async def play(scene: Fleet) -> None:
        for share in (0.1, 0.4, 0.7):
            while len(scene.sim.cloud.pods) < share * count:
                await asyncio.sleep(0.01)  # creates come by the hundred in one second
            await scene.kill()
            dead = scene.process
            await scene.until(lambda dead=dead: scene.process is not dead)
        await scene.until(scene.all_ready, timedelta(hours=2))
        await scene.pause(timedelta(minutes=5))
        assert scene.deaths == 3
        assert set(scene.pods_made().values()) == {1}
        assert len(scene.alive()) == len(scene.pods_made()) == count
        windows = scene.windows_since(scene.sim.journal.entries[0].at)
        assert sum(calls.refused for calls in windows) == 0
        # nothing here is a stop or a delete, for which the rest of the quota is kept
        # (a process knows no window before its first answer)
        assert max(calls.total for calls in windows) <= quota["minute"] - RESERVED + scene.deaths, windows
        assert any(calls.by_kind["POST pods"] for calls in windows)
        catalogs = sum(calls.by_kind["GET catalog/gpus"] for calls in windows)
        assert catalogs <= (scene.deaths + 1) + len(windows) // 10, "one for all, each ten minutes"

    fleet(tmp_path, count, quota, play)
