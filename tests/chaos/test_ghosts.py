"""A create that lands long after everybody has given it up: known by its nonce, gone soon after it shows itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chaoskit.scene import Scene, gpupod
from chaoskit.staging import staged
from gpupod_operator.api.names import GPUPODS
from gpupod_rehearsal.runpod.faults import Target
from gpupod_rehearsal.runpod.pod import SimPod

HIDDEN = 300
"""Seconds for which lists lack the pod: five times as long as an ambiguous create is waited for."""
TWO_LISTS = timedelta(seconds=40)


async def a_create_that_nobody_sees(scene: Scene) -> SimPod:
    """The pod is made, the answer is lost, and lists lack it for a long time."""
    scene.sim.faults.add("create-then-drop")
    scene.sim.faults.add("list-lag", count=1, target=Target(), fresh=HIDDEN, deleted=0)
    scene.cluster.apply(GPUPODS, "one", gpupod())
    await scene.until(lambda: bool(scene.alive()))
    return scene.alive()[0]


def in_time(scene: Scene, ghost: SimPod, more: timedelta = timedelta(0)) -> None:
    assert ghost.deleted_at is not None
    shown = ghost.created_at + timedelta(seconds=HIDDEN)
    assert ghost.deleted_at - shown <= TWO_LISTS + more, scene.story()


@pytest.mark.parametrize("killed", [False, True])
def test_a_late_ghost_beside_its_successor_is_ended_and_the_pod_stays(killed):
    async def play(scene: Scene) -> None:
        ghost = await a_create_that_nobody_sees(scene)
        await scene.until(scene.ready)
        assert len(scene.alive()) == 2, "the successor of a create that nobody saw"
        mine = scene.pod_id()
        assert mine != ghost.id
        if killed:
            await scene.kill()
        await scene.until(lambda: not ghost.alive)
        in_time(scene, ghost)
        await scene.pause(timedelta(minutes=5))
        assert [p.id for p in scene.alive()] == [mine]
        assert scene.ready()

    staged(play)


@pytest.mark.parametrize("killed", [False, True])
def test_a_late_ghost_of_an_object_that_is_gone_is_ended(killed):
    async def play(scene: Scene) -> None:
        ghost = await a_create_that_nobody_sees(scene)
        await scene.until(scene.ready)
        scene.cluster.delete(GPUPODS, "one")
        await scene.until(lambda: not scene.cluster.objects[GPUPODS])
        assert [p.id for p in scene.alive()] == [ghost.id]
        if killed:
            await scene.kill()
        await scene.until(lambda: not ghost.alive)
        # without an object it is found by the look for orphans, every ten ticks, which has to agree twice
        in_time(scene, ghost, timedelta(minutes=6))

    staged(play)


def test_a_pod_of_ours_with_a_nonce_that_nobody_knows_is_never_taken_for_a_ghost():
    async def play(scene: Scene) -> None:
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(scene.ready)
        mine = scene.alive()[0]
        body_env = {"GPUPOD_OWNER": mine.owner or "", "GPUPOD_NONCE": "unheard-of"}
        strange = await scene.make_by_hand(ports=["22/tcp"], env=body_env)
        await scene.pause(timedelta(minutes=10))
        assert {p.id for p in scene.alive()} == {mine.id, strange}
        assert any(c["reason"] == "DuplicatePods" for c in scene.status()["conditions"]), scene.story()

    staged(play)
