"""Each operation with a watch that repeats, reorders or loses events: no double, and a list tells what was lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chaoskit.operations import OPERATIONS
from chaoskit.points import OF_THE_WATCH, Mishap
from chaoskit.scene import Scene, gpupod
from chaoskit.schedule import Schedule, play, run
from chaoskit.staging import staged
from gpupod_operator.api.names import GPUPODS


@pytest.mark.parametrize("mishap", OF_THE_WATCH)
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_watch_that_lies_for_a_minute_breaks_no_promise(operation, mishap):
    points = len(play(Schedule(operation)).points)
    every = range(0, points, max(1, points // 5))
    assert [str(p) for p in run(*(Schedule(operation, {n: mishap}) for n in every))] == []


@pytest.mark.parametrize("mishap", OF_THE_WATCH)
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_nor_does_a_death_meanwhile(operation, mishap):
    points = len(play(Schedule(operation)).points)
    every = range(0, points, max(1, points // 3))
    assert [str(p) for p in run(*(Schedule(operation, {n: mishap, n + 2: Mishap.KILL}) for n in every))] == []


def test_an_edit_that_the_watch_lost_is_heard_at_the_next_list():
    async def plays(scene: Scene) -> None:
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(scene.ready)
        await scene.pause(timedelta(minutes=5))
        scene.cluster.wire.begin(Mishap.DEAF)
        scene.cluster.edit(GPUPODS, "one", state="Stopped")
        await scene.pause(timedelta(seconds=10))
        assert scene.ready(), "nobody has told it"
        await scene.until(lambda: scene.status()["phase"] == "Stopped", timedelta(minutes=3))
        assert scene.cluster.wire.played[Mishap.DEAF] > 0

    staged(plays)


def test_an_end_that_the_watch_lost_is_found_by_listing():
    """The finalizer was taken off by hand, so that nothing held the object until it was known."""

    async def plays(scene: Scene) -> None:
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(scene.ready)
        await scene.pause(timedelta(minutes=2))
        scene.cluster.wire.begin(Mishap.DEAF)
        scene.cluster.objects[GPUPODS][("ml", "one")]["metadata"]["finalizers"] = []
        scene.cluster.delete(GPUPODS, "one")
        assert scene.process is not None
        store = scene.process.world.store
        assert store.get(GPUPODS, ("ml", "one")) is not None, "nobody has told it"
        await scene.until(lambda: store.get(GPUPODS, ("ml", "one")) is None, timedelta(minutes=12))

    staged(plays)


def test_an_old_version_that_comes_after_its_end_raises_nobody():
    """The last event of an object is told once more, 20 s after the object and its pod are gone."""

    async def plays(scene: Scene) -> None:
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(scene.ready)
        await scene.pause(timedelta(minutes=2))
        scene.cluster.wire.begin(Mishap.REPEATED)
        scene.cluster.delete(GPUPODS, "one")
        await scene.until(lambda: not scene.cluster.objects[GPUPODS])
        await scene.pause(timedelta(minutes=12))
        assert scene.cluster.wire.played[Mishap.REPEATED] > 0
        assert scene.process is not None
        assert scene.process.world.store.all(GPUPODS) == []
        assert len(scene.sim.cloud.pods) == 1
        assert scene.alive() == []

    staged(plays)
