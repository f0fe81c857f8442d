"""What an operator does, as data: how it is prepared, what sets it off, and when it is done. Add one, and every test
of crashes, faults and histories plays it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from chaoskit.scene import Scene, gpupod
from gpupod_operator.api.names import GPUPODS
from gpupod_rehearsal.runpod.pod import Status

Act = Callable[[Scene], Awaitable[None]]
WORK = {"command": ["python", "train.py"]}
SHORT = {"sshWait": "30s", "wedgeAfter": "60s"}
"""Durations of an impatient person, so that a schedule has few idle looks in it."""


@dataclass(frozen=True)
class Operation:
    """`pods` bounds how many pods it may make in all, `budget` what it may cost in USD (both without vendor faults).

    `released` says that the pod stays by order of a person.
    """

    name: str
    prepare: Act
    act: Act
    done: Callable[[Scene], bool]
    pods: int = 1
    released: bool = False
    within: timedelta = timedelta(minutes=45)


async def _nothing(scene: Scene) -> None:
    """The world is empty."""


def _running(**spec: object) -> Act:
    async def prepare(scene: Scene) -> None:
        scene.cluster.apply(GPUPODS, "one", gpupod(**spec))
        await scene.until(lambda: scene.ready() and _at_work(scene))
        # past the moment in which a fresh pod may still be missing from lists
        await scene.pause(timedelta(minutes=2))

    return prepare


def _at_work(scene: Scene) -> bool:
    raw = scene.cluster.find(GPUPODS, "one")
    wanted = raw is not None and (raw["spec"].get("workload") or {}).get("command")
    return not wanted or (scene.status().get("workload") or {}).get("state") == "Running"


async def _create(scene: Scene) -> None:
    scene.cluster.apply(GPUPODS, "one", gpupod())


async def _create_and_delete(scene: Scene) -> None:
    """A person who changes his mind as soon as the pod is made."""
    await _create(scene)
    await scene.until(lambda: bool(scene.alive()))
    await _delete(scene)


async def _launch(scene: Scene) -> None:
    scene.cluster.apply(GPUPODS, "one", gpupod(workload=WORK))


async def _stop(scene: Scene) -> None:
    scene.cluster.edit(GPUPODS, "one", state="Stopped")


async def _stopped(scene: Scene) -> None:
    await _running(workload=WORK)(scene)
    await _stop(scene)
    await scene.until(lambda: _is_stopped(scene))


async def _start(scene: Scene) -> None:
    scene.cluster.edit(GPUPODS, "one", state="Running")


async def _wedge(scene: Scene) -> None:
    scene.sim.faults.add("wedge-later", pod=scene.pod_id() or "")
    scene.sim.cloud.touch()


async def _migrate(scene: Scene) -> None:
    scene.cluster.annotate(GPUPODS, "one", migrate=scene.pod_id())


async def _delete(scene: Scene) -> None:
    scene.cluster.delete(GPUPODS, "one")


async def _somebodys(scene: Scene) -> None:
    """A pod that a person made by hand, without 22/tcp among its ports."""
    await scene.make_by_hand(ports=["8888/http"])


async def _by_hand(scene: Scene) -> None:
    await scene.make_by_hand(ports=["22/tcp"])


async def _adopt(scene: Scene) -> None:
    scene.cluster.apply(GPUPODS, "one", {**gpupod(), "adopt": {"podId": scene.foreign[0]}})


async def _price_doubles(scene: Scene) -> None:
    scene.sim.faults.add("price-change", factor=4, duration=30)


async def _create_with_cap(scene: Scene) -> None:
    scene.cluster.apply(GPUPODS, "one", gpupod(spend={"maxPricePerHour": "4.00"}))


async def _other_account(scene: Scene) -> None:
    scene.cluster.secrets[("ml", "other")] = {"api-key": scene.sim.key("other").encode()}
    scene.cluster.edit(GPUPODS, "one", account={"secretRef": {"name": "other", "key": "api-key"}})
    await scene.pause(timedelta(minutes=3))
    scene.cluster.edit(GPUPODS, "one", account=None)


async def _stopped_outside(scene: Scene) -> None:
    scene.sim.faults.add("outside-stop", pod=scene.pod_id() or "")
    scene.sim.cloud.touch()


async def _ended_outside(scene: Scene) -> None:
    scene.sim.faults.add("outside-terminate", pod=scene.pod_id() or "")
    scene.sim.cloud.touch()


async def _running_and_saved(scene: Scene) -> None:
    """Somebody takes a snapshot of etcd, and then the pod is made."""
    scene.cluster.apply(GPUPODS, "one", gpupod(workload=WORK))
    await scene.until(lambda: bool(scene.cluster.objects[GPUPODS][("ml", "one")]["metadata"].get("finalizers")))
    scene.cluster.snapshot(GPUPODS, "one", status={})
    await scene.until(lambda: _up(scene))
    await scene.pause(timedelta(minutes=2))


async def _moved_and_saved(scene: Scene) -> None:
    """The snapshot is of the time before a migration."""
    await _running(workload=WORK)(scene)
    scene.cluster.snapshot(GPUPODS, "one")
    await _migrate(scene)
    await scene.until(lambda: _moved(scene))
    await scene.pause(timedelta(minutes=2))


async def _restore(scene: Scene) -> None:
    scene.cluster.restore(GPUPODS, "one")


async def _strip(scene: Scene) -> None:
    """Somebody takes the finalizers off and deletes the object."""
    scene.cluster.objects[GPUPODS][("ml", "one")]["metadata"]["finalizers"] = []
    scene.cluster.delete(GPUPODS, "one")


def _reported(scene: Scene) -> bool:
    process = scene.process
    assert process is not None
    told = [s.labels["pod"] for m in process.world.metrics.orphans.collect() for s in m.samples]
    return [p.id for p in scene.alive()] == told


def _is_stopped(scene: Scene) -> bool:
    pods = scene.alive()
    return scene.status().get("phase") == "Stopped" and len(pods) == 1 and pods[0].status is Status.EXITED


def _moved(scene: Scene) -> bool:
    return scene.ready() and _at_work(scene) and len(scene.pods()) >= 2 and len(scene.alive()) == 1


def _gone(scene: Scene) -> bool:
    return not scene.cluster.objects[GPUPODS] and not scene.alive()


def _released(scene: Scene) -> bool:
    return not scene.cluster.objects[GPUPODS] and len(scene.alive()) == 1


def _released_stopped(scene: Scene) -> bool:
    return _released(scene) and scene.alive()[0].status is Status.EXITED


def _expired(scene: Scene) -> bool:
    return _is_stopped(scene) and bool(scene.status().get("ended"))


def _up(scene: Scene) -> bool:
    return scene.ready() and _at_work(scene) and len(scene.alive()) == 1


def _outside_is_told(scene: Scene) -> bool:
    return any(c["reason"] == "StoppedOutside" for c in scene.status().get("conditions") or [])


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("create", _nothing, _create, _up),
        Operation("launch", _nothing, _launch, _up),
        Operation("stop", _running(workload=WORK), _stop, _is_stopped),
        Operation("start", _stopped, _start, _up),
        Operation("migrate-wedged", _running(workload=WORK, health=SHORT), _wedge, _moved, pods=2),
        Operation("migrate-asked", _running(), _migrate, _moved, pods=2),
        Operation("teardown-at-once", _nothing, _create_and_delete, _gone),
        Operation("teardown", _running(), _delete, _gone),
        Operation("teardown-stop", _running(deletionPolicy="Stop"), _delete, _released_stopped, released=True),
        Operation("teardown-orphan", _running(deletionPolicy="Orphan"), _delete, _released, released=True),
        Operation("adopt", _by_hand, _adopt, _up, pods=0),
        Operation("patch", _somebodys, _adopt, _up, pods=0),
        Operation("undo-over-cap", _price_doubles, _create_with_cap, _up, pods=2),
        Operation("expire", _running(spend={"ttl": "4m"}), _nothing, _expired),
        Operation("account-changed-and-back", _running(), _other_account, _up),
        Operation("stopped-outside", _running(workload=WORK), _stopped_outside, _outside_is_told),
        Operation("restored-before-create", _running_and_saved, _restore, _up),
        Operation("restored-before-move", _moved_and_saved, _restore, _up, pods=2),
        Operation("finalizer-stripped", _running(), _strip, _reported, released=True),
        Operation("ended-outside", _running(), _ended_outside, _moved, pods=2),
    )
}
