"""The operator's clock is an hour off, or jumps by one: nothing is doubled, leaked, or ended before its time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chaoskit.operations import OPERATIONS
from chaoskit.points import Mishap
from chaoskit.scene import Scene, gpupod
from chaoskit.schedule import Schedule, play
from chaoskit.staging import staged
from gpupod_operator.api.names import GPUPODS

HOUR = 3600.0


@pytest.mark.parametrize("skew", [-HOUR, HOUR], ids=["behind", "ahead"])
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_an_hour_off_breaks_no_promise(operation, skew):
    whole = play(Schedule(operation, skew=skew))
    # what waits for an age waits an hour longer by a clock that is behind: once is enough
    deaths = () if whole.length > timedelta(hours=1) else range(3, len(whole.points), max(1, len(whole.points) // 4))
    played = [whole, *(play(Schedule(operation, {p: Mishap.KILL}, skew=skew)) for p in deaths)]
    assert [str(p) for p in played if p.broken] == []


@pytest.mark.parametrize("jump", [-HOUR, HOUR], ids=["back", "ahead"])
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_jump_of_an_hour_on_the_way_breaks_no_promise(operation, jump):
    played = play(Schedule(operation, jump=jump))
    assert played.broken == (), str(played)


@pytest.mark.parametrize("skew", [-HOUR, HOUR], ids=["behind", "ahead"])
@pytest.mark.parametrize("fault", [None, "create-then-drop"])
def test_a_pod_that_is_taken_over_has_its_whole_ttl_and_its_whole_start_timeout(skew, fault):
    async def play_it(scene: Scene) -> None:
        scene.own.skew = timedelta(seconds=skew)
        if fault is not None:
            scene.sim.faults.add(fault)
        scene.sim.faults.add("slow-pull", seconds=300)
        scene.cluster.apply(GPUPODS, "one", gpupod(spend={"ttl": "20m", "onLimit": "Terminate"}))
        await scene.until(lambda: bool(scene.alive()))
        if fault is None:
            await scene.kill()
        await scene.until(lambda: scene.sim.cloud.pods and not scene.alive())
        (pod,) = scene.sim.cloud.pods.values()
        assert pod.deleted_at is not None
        lived = pod.deleted_at - pod.created_at
        assert timedelta(minutes=19, seconds=50) <= lived <= timedelta(minutes=21), scene.story()

    staged(play_it)


@pytest.mark.parametrize("jump", [-HOUR, HOUR], ids=["back", "ahead"])
def test_a_fault_that_passes_is_no_wedge_because_the_clock_jumped(jump):
    """A jump shortens the wedge clock to the confirmations, which are fresh looks, and no further."""

    async def play_it(scene: Scene) -> None:
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(scene.ready)
        await scene.pause(timedelta(minutes=5))
        first = scene.pod_id()
        scene.sim.faults.add("wedge-later", pod=first or "", duration=25)
        scene.sim.cloud.touch()
        await scene.pause(timedelta(seconds=16))
        scene.own.skew = timedelta(seconds=jump)
        await scene.pause(timedelta(minutes=10))
        await scene.until(scene.ready)
        assert scene.pod_id() == first
        assert [p.id for p in scene.sim.cloud.pods.values()] == [first], scene.story()

    staged(play_it)


@pytest.mark.parametrize("skew", [-HOUR, HOUR], ids=["behind", "ahead"])
def test_an_orphan_is_reaped_after_five_minutes_of_anybodys_clock(skew):
    async def play_it(scene: Scene) -> None:
        scene.own.skew = timedelta(seconds=skew)
        # records began at a moment of the operator's clock: pods that are older by the vendor's are only told
        await scene.pause(timedelta(minutes=70))
        scene.sim.faults.add("wedge-at-boot")
        scene.cluster.apply(GPUPODS, "one", gpupod(health={"startTimeout": "9h", "wedgeAfter": "9h"}))
        await scene.until(lambda: scene.pod_id() is not None)
        pod = scene.sim.cloud.pods[str(scene.pod_id())]
        scene.cluster.objects[GPUPODS][("ml", "one")]["metadata"]["finalizers"] = []
        scene.cluster.delete(GPUPODS, "one")
        await scene.until(lambda: not pod.alive, timedelta(hours=2))
        assert pod.deleted_at is not None
        assert pod.deleted_at - pod.created_at > timedelta(minutes=5)

    staged(play_it, reap_orphans=True)
