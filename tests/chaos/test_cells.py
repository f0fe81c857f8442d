"""Results on a disk that dies with its pod: whoever dies and whatever is away, what is known to be done is not lost."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from chaoskit.points import Mishap
from chaoskit.scene import Scene, gpupod
from chaoskit.staging import staged
from chaoskit.sweep import KeepingHub, Sweep
from gpupod_operator.api.names import GPUPODS, SWEEPCELLS
from gpupod_rehearsal.runpod.pod import Status

CELLS = 6
SCHEDULES = int(os.environ.get("GPUPOD_SCHEDULES", "400")) // 25
WORK = {"command": ["python", "sweep.py"], "onSuccess": "Keep"}
SHORT = {"sshWait": "30s", "wedgeAfter": "60s"}


async def wedge(scene: Scene) -> None:
    scene.sim.faults.add("wedge-later", pod=scene.pod_id() or "")
    scene.sim.cloud.touch()


async def move(scene: Scene) -> None:
    scene.cluster.annotate(GPUPODS, "one", migrate=scene.pod_id())


async def stop(scene: Scene) -> None:
    scene.cluster.edit(GPUPODS, "one", state="Stopped")


async def delete(scene: Scene) -> None:
    scene.cluster.delete(GPUPODS, "one")


async def delete_all(scene: Scene) -> None:
    for n in range(CELLS):
        scene.cluster.delete(SWEEPCELLS, f"c{n}")
    scene.cluster.delete(GPUPODS, "one")


async def expire(scene: Scene) -> None:
    scene.cluster.edit(GPUPODS, "one", spend={"ttl": "10s", "onLimit": "Terminate"})


async def nothing(scene: Scene) -> None:
    """It works on."""


def all_verified(scene: Scene) -> bool:
    cells = scene.cluster.objects[SWEEPCELLS].values()
    return len(cells) == CELLS and all(c["status"].get("phase") == "Verified" for c in cells)


def moved(scene: Scene) -> bool:
    return all_verified(scene) and len(scene.pods()) == 2 and len(scene.alive()) == 1


def stopped(scene: Scene) -> bool:
    return [p.status for p in scene.alive()] == [Status.EXITED] and scene.status()["phase"] == "Stopped"


def gone(scene: Scene) -> bool:
    return not scene.cluster.objects[GPUPODS] and not scene.alive()


def ended(scene: Scene) -> bool:
    return not scene.alive() and scene.status().get("phase") == "Stopped"


ACTS: dict[str, tuple[Callable[[Scene], Awaitable[None]], Callable[[Scene], bool]]] = {
    "work": (nothing, all_verified),
    "wedge": (wedge, moved),
    "move": (move, moved),
    "stop": (stop, stopped),
    "delete": (delete, gone),
    "delete-all": (delete_all, lambda scene: gone(scene) and not scene.cluster.objects[SWEEPCELLS]),
    "expire": (expire, ended),
}
ALL_ON_THE_HUB = {"work", "wedge", "move"}


def played(act: str, seed: int, *, after: float, mishaps: dict[int, Mishap], hub_away: tuple[float, float]) -> None:
    do, done = ACTS[act]

    async def play(scene: Scene) -> None:
        hub, sweep = scene.hub, scene.sweep
        assert isinstance(hub, KeepingHub)
        assert isinstance(sweep, Sweep)
        scene.cluster.apply(
            GPUPODS, "one", gpupod(workload=WORK, health=SHORT, remediation={"artifacts": "RequireVerified"})
        )
        await scene.until(lambda: scene.ready())
        scene.points.arm(mishaps)
        await scene.pause(timedelta(seconds=after))
        begin, length = hub_away
        await scene.pause(timedelta(seconds=begin))
        hub.down = length > 0
        await do(scene)
        await scene.pause(timedelta(seconds=length))
        hub.down = False
        await scene.until(lambda: done(scene), timedelta(minutes=90))
        await scene.pause(timedelta(minutes=3))
        assert done(scene), scene.story()
        broken = [*sweep.broken, *(sweep.unfinished() if act in ALL_ON_THE_HUB else ()), *scene.books.broken]
        assert broken == [], f"{act} seed {seed}\n{scene.story()}"

    staged(play, cells=CELLS)


@pytest.mark.parametrize("act", sorted(ACTS))
@pytest.mark.parametrize("hub", [0.0, 400.0])
def test_an_end_in_the_middle_of_a_sweep_loses_nothing(act, hub):
    played(act, 0, after=100, mishaps={}, hub_away=(0, hub))


@pytest.mark.parametrize("lot", range(4))
def test_nor_does_it_with_deaths_outages_and_a_hub_that_is_away(lot):
    for seed in range(lot, SCHEDULES, 4):
        dice = random.Random(seed)
        kinds = (Mishap.KILL, Mishap.KILL, Mishap.OUTAGE, Mishap.CONFLICT, Mishap.LOST)
        mishaps = {dice.randrange(300): dice.choice(kinds) for _ in range(dice.randrange(4))}
        away = (dice.choice((0.0, 20.0)), dice.choice((0.0, 0.0, 60.0, 600.0)))
        act = dice.choice(sorted(ACTS))
        played(act, seed, after=dice.randrange(5, 260), mishaps=mishaps, hub_away=away)


def test_the_judge_sees_what_an_operator_that_may_lose_data_loses():
    async def play(scene: Scene) -> None:
        assert isinstance(scene.hub, KeepingHub)
        assert scene.sweep is not None
        disposable = {"artifacts": "Disposable"}
        scene.cluster.apply(GPUPODS, "one", gpupod(workload=WORK, health=SHORT, remediation=disposable))
        await scene.until(lambda: scene.ready())
        scene.hub.down = True
        await scene.pause(timedelta(seconds=150))
        scene.cluster.delete(GPUPODS, "one")
        await scene.until(lambda: not scene.alive())
        await scene.pause(timedelta(minutes=1))
        assert [sentence.partition(" ")[0] for sentence in scene.sweep.broken] != []
        assert all(sentence.startswith("I4") for sentence in scene.sweep.broken)
        assert list(scene.sweep.unfinished()) != []

    staged(play, cells=CELLS)
