"""Money in status against the vendor's own books: never less, and more only by what could not be known."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import aiohttp
import pytest

from chaoskit.money import GRAIN
from chaoskit.operations import OPERATIONS
from chaoskit.scene import Scene, gpupod
from chaoskit.staging import staged
from gpupod_operator.api.names import GPUPODS
from gpupod_operator.api.times import parse_time
from gpupod_operator.core.gpupod.timer import ACTS_WITHIN

UNKNOWABLE = timedelta(minutes=2)
"""Per pod: from its end to the proof, which is two lists and a GET, or the next look."""
STAMPED = sorted(set(OPERATIONS) - {"adopt", "patch"} - {n for n in OPERATIONS if "restored" in n})


@pytest.mark.parametrize("name", STAMPED)
def test_what_an_operation_cost_is_in_the_status(name):
    operation = OPERATIONS[name]

    async def play(scene: Scene) -> None:
        await operation.prepare(scene)
        await operation.act(scene)
        await scene.until(lambda: operation.done(scene), operation.within)
        await scene.pause(timedelta(minutes=7))
        scene.books.close()
        assert scene.books.broken == [], scene.story()
        assert scene.books.looks > 1
        assert scene.books.over <= UNKNOWABLE * len(scene.sim.cloud.pods), scene.story()

    staged(play)


@pytest.mark.parametrize("fault", [None, "create-then-drop", "create-then-500", "create-then-slow"])
@pytest.mark.parametrize("moment", [1, 30, 400])
def test_an_operator_that_never_comes_back_costs_no_more_than_it_said(fault, moment):
    """And where it said nothing, it could not have known: the pod runs on."""

    async def play(scene: Scene) -> None:
        if fault is not None:
            scene.sim.faults.add(fault)
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.pause(timedelta(seconds=moment))
        await scene.die()
        bound = (scene.status().get("cost") or {}).get("maxBurn")
        assert bound is None, "a pod runs, or may"
        await scene.pause(timedelta(hours=12))
        assert len(scene.alive()) == 1
        scene.books.close()
        assert scene.books.broken == []

    staged(play)


def test_without_a_pod_the_worst_case_is_what_was_paid():
    async def play(scene: Scene) -> None:
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(scene.ready)
        await scene.pause(timedelta(minutes=20))
        scene.cluster.edit(GPUPODS, "one", spend={"ttl": "10m", "onLimit": "Terminate"})
        await scene.until(lambda: not scene.alive())
        await scene.until(lambda: (scene.status().get("cost") or {}).get("maxBurn") is not None)
        cost = scene.status()["cost"]
        assert cost["maxBurn"] == cost["accruedAtSince"]
        await scene.die()
        await scene.pause(timedelta(hours=12))
        scene.books.close()
        assert scene.books.broken == []

    staged(play)


def test_a_late_ghost_is_paid_for_by_its_object():
    async def play(scene: Scene) -> None:
        scene.sim.faults.add("create-then-drop")
        scene.sim.faults.add("list-lag", count=1, fresh=300, deleted=0)
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(lambda: len(scene.sim.cloud.pods) == 2 and scene.ready())
        await scene.until(lambda: len(scene.alive()) == 1)
        await scene.pause(timedelta(minutes=5))
        scene.books.close()
        assert scene.books.broken == [], scene.story()

    staged(play)


@pytest.mark.parametrize("late", [timedelta(0), ACTS_WITHIN])
def test_a_pod_that_stops_itself_costs_no_more_than_was_said_when_its_operator_died(late):
    """The agent of these schedules is told its deadline and not played: the test stops the pod, with the pod's key."""

    async def play(scene: Scene) -> None:
        scene.cluster.apply(GPUPODS, "one", gpupod(spend={"ttl": "30m"}))
        await scene.until(lambda: (scene.status().get("cost") or {}).get("maxBurn") is not None)
        bound = Decimal(scene.status()["cost"]["maxBurn"])
        deadline = parse_time(scene.status()["attempt"]["timer"]["deadline"])
        await scene.die()
        await scene.pause(deadline + late - scene.clock.now())
        (pod,) = scene.alive()
        headers = {"Authorization": f"Bearer {pod.key}", "User-Agent": "gpupod-cell/1"}
        url = f"{scene.sim.url}/v2/pods/{pod.id}/action"
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(url, json={"action": "stop"}) as answer,
        ):
            assert answer.status == 200
        await scene.pause(timedelta(hours=12))
        spent = scene.sim.cloud.ledger.spent(scene.clock.now())
        assert bound - Decimal("0.25") <= spent <= bound + GRAIN

    staged(play)
