"""Finalizers are stripped by hand and the object is deleted: what is left bills, and is told or reaped."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chaoskit.scene import Scene, gpupod
from chaoskit.staging import staged
from gpupod_operator.api.names import GPUPODS


def strip(scene: Scene, name: str) -> None:
    scene.cluster.objects[GPUPODS][("ml", name)]["metadata"]["finalizers"] = []
    scene.cluster.delete(GPUPODS, name)


async def ready_and_starting(scene: Scene) -> tuple[str, str]:
    """After the records began: a pod that became Ready, and one whose host never publishes a port."""
    await scene.pause(timedelta(minutes=6))
    scene.cluster.apply(GPUPODS, "one", gpupod())
    await scene.until(scene.ready)
    scene.sim.faults.add("wedge-at-boot")
    scene.cluster.apply(GPUPODS, "two", gpupod(health={"startTimeout": "2h", "wedgeAfter": "2h"}))
    await scene.until(lambda: scene.pod_id("two") is not None)
    await scene.pause(timedelta(minutes=1))
    return str(scene.pod_id("one")), str(scene.pod_id("two"))


def told(scene: Scene) -> set[str]:
    assert scene.process is not None
    return {s.labels["pod"] for m in scene.process.world.metrics.orphans.collect() for s in m.samples}


@pytest.mark.parametrize("killed", [False, True])
def test_with_the_flag_only_the_one_that_was_never_ready_is_deleted(killed):
    async def play(scene: Scene) -> None:
        used, unused = await ready_and_starting(scene)
        strip(scene, "one")
        strip(scene, "two")
        if killed:
            await scene.kill()
        await scene.until(lambda: not scene.sim.cloud.pods[unused].alive)
        await scene.pause(timedelta(minutes=20))
        assert [p.id for p in scene.alive()] == [used]
        assert told(scene) == {used}

    staged(play, reap_orphans=True)


def test_without_the_flag_both_are_told_and_stay():
    async def play(scene: Scene) -> None:
        pods = set(await ready_and_starting(scene))
        strip(scene, "one")
        strip(scene, "two")
        await scene.until(lambda: told(scene) == pods)
        await scene.pause(timedelta(minutes=20))
        assert {p.id for p in scene.alive()} == pods

    staged(play)


def test_a_young_one_is_left_alone_for_five_minutes():
    async def play(scene: Scene) -> None:
        await scene.pause(timedelta(minutes=6))
        scene.sim.faults.add("wedge-at-boot")
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(lambda: scene.pod_id() is not None)
        pod = scene.sim.cloud.pods[str(scene.pod_id())]
        strip(scene, "one")
        await scene.until(lambda: not pod.alive)
        assert pod.deleted_at is not None
        assert pod.deleted_at - pod.created_at > timedelta(minutes=5)

    staged(play, reap_orphans=True)


def test_pods_from_before_the_flag_are_never_reaped():
    async def play(scene: Scene) -> None:
        scene.sim.faults.add("wedge-at-boot")
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(lambda: scene.pod_id() is not None)
        pod = str(scene.pod_id())
        strip(scene, "one")
        scene.settings = scene.settings.model_copy(update={"reap_orphans": True})
        await scene.kill()
        await scene.until(lambda: told(scene) == {pod})
        await scene.pause(timedelta(minutes=20))
        assert [p.id for p in scene.alive()] == [pod]

    staged(play)
