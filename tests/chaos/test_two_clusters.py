"""Two clusters share one account: each has its own operator, and neither touches or reports the other's pods."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from datetime import timedelta
from pathlib import Path

import looptime
import pytest

from chaoskit.judge import judged
from chaoskit.operations import OPERATIONS, Operation
from chaoskit.points import Mishap
from chaoskit.scene import Scene, gpupod
from gpupod_operator.api.names import GPUPODS

ALONE = {"adopt", "patch", "account-changed-and-back", "undo-over-cap"}
"""They need a pod or a price that both clusters see."""
PLAYED = sorted(set(OPERATIONS) - ALONE)
PAIRS = int(os.environ.get("GPUPOD_SCHEDULES", "400")) // 20


def both(play) -> None:
    async def whole(folder: Path) -> None:
        async with Scene(folder) as one, Scene(folder, 1, beside=one) as two:
            await play(one, two)

    loop = looptime.new_event_loop(start=0)
    with tempfile.TemporaryDirectory() as folder:
        try:
            loop.run_until_complete(whole(Path(folder)))
        finally:
            loop.close()


async def live(scene: Scene, operation: Operation, mishaps: dict[int, Mishap]) -> None:
    await operation.prepare(scene)
    scene.points.arm(mishaps)
    await operation.act(scene)
    await scene.until(lambda: operation.done(scene), operation.within)
    scene.points.armed = False
    await scene.pause(timedelta(minutes=3))
    await scene.until(lambda: operation.done(scene), timedelta(minutes=10))


@pytest.mark.parametrize("lot", range(4))
def test_neither_touches_the_others_pods_whatever_both_do_and_whoever_dies(lot):
    for seed in range(lot, PAIRS, 4):
        dice = random.Random(seed)
        names = [dice.choice(PLAYED) for _ in range(2)]
        deaths = [dict.fromkeys(dice.sample(range(40), dice.randrange(3)), Mishap.KILL) for _ in range(2)]

        async def play(one: Scene, two: Scene, seed=seed, names=names, deaths=deaths) -> None:
            scenes = (one, two)
            parts = zip(scenes, names, deaths, strict=True)
            await asyncio.gather(*(live(scene, OPERATIONS[name], points) for scene, name, points in parts))
            for scene, name in zip(scenes, names, strict=True):
                scene.books.close()
                assert judged(scene, OPERATIONS[name], faulty=False) == [], f"seed {seed}: {names}\n{scene.story()}"

        both(play)


def orphans(scene: Scene) -> set[str]:
    assert scene.process is not None
    return {s.labels["pod"] for m in scene.process.world.metrics.orphans.collect() for s in m.samples}


def test_the_same_uid_in_both_is_two_pods_and_no_orphan():
    """A restored copy of a cluster has the objects and uids of the first; what differs is the instance."""

    async def play(one: Scene, two: Scene) -> None:
        for scene in (one, two):
            scene.cluster.apply(GPUPODS, "one", gpupod())
        uids = [scene.cluster.objects[GPUPODS][("ml", "one")]["metadata"]["uid"] for scene in (one, two)]
        assert uids[0] == uids[1]
        await one.until(lambda: one.ready() and two.ready())
        assert one.pod_id() != two.pod_id()
        one.cluster.delete(GPUPODS, "one")
        await one.until(lambda: not one.alive())
        await one.pause(timedelta(minutes=15))
        assert len(two.alive()) == 1
        assert two.ready()
        assert orphans(one) == orphans(two) == set()

    both(play)


def test_a_clone_with_the_same_instance_takes_the_pods_for_its_own_and_rents_none():
    """What `--instance-id` is for. Without it the copy believes that it is the cluster: it never rents a second pod,
    and it acts on the first one. So a copy is given an instance id of its own before its operator starts.
    """

    async def play(one: Scene, two: Scene) -> None:
        one.cluster.apply(GPUPODS, "one", gpupod())
        await one.until(one.ready)
        await one.pause(timedelta(minutes=2))
        two.instance = one.instance
        await two.kill()
        await two.pause(timedelta(minutes=1))
        copy = one.cluster.find(GPUPODS, "one")
        assert copy is not None
        two.cluster.clone(GPUPODS, copy)
        await two.pause(timedelta(minutes=15))
        assert len(one.alive()) == 1
        assert two.pod_id() == one.pod_id()

    both(play)


@pytest.mark.parametrize("deleted", [False, True])
def test_a_clone_with_an_instance_of_its_own_leaves_the_pods_of_the_first_alone(deleted):
    async def play(one: Scene, two: Scene) -> None:
        one.cluster.apply(GPUPODS, "one", gpupod())
        await one.until(one.ready)
        await one.pause(timedelta(minutes=2))
        copy = one.cluster.find(GPUPODS, "one")
        assert copy is not None
        two.cluster.clone(GPUPODS, copy)
        await two.pause(timedelta(minutes=15))
        if deleted:
            two.cluster.delete(GPUPODS, "one")
            await two.pause(timedelta(minutes=15))
            assert "set deletionPolicy to Orphan" in two.status()["message"]
            two.cluster.edit(GPUPODS, "one", deletionPolicy="Orphan")
            await two.until(lambda: not two.cluster.objects[GPUPODS])
        assert [e.path for e in one.sim.journal.mutations() if e.key == two.key_alias] == []
        assert one.ready()

    both(play)
