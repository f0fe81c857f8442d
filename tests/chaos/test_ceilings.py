"""Many ask at once under a ceiling, with deaths and faults: the vendor's books never show more than it allows."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import pytest

from chaoskit.points import Mishap
from chaoskit.scene import GPU, Scene, gpupod
from chaoskit.staging import staged
from gpupod_operator.api.names import GPUPODS

PRICE = Decimal("2.6968")
MANY = 30


def most_at_once(scene: Scene) -> int:
    """Pods that the vendor billed as running at the same time, at most."""
    changes = []
    for segment in scene.sim.cloud.ledger.segments:
        if segment.compute:
            changes += [(segment.begin, 1), (segment.end or scene.clock.now(), -1)]
    count = most = 0
    for _, change in sorted(changes):
        count += change
        most = max(most, count)
    return most


def ready(scene: Scene) -> set[str]:
    return {f"p{n:02}" for n in range(MANY) if scene.ready(f"p{n:02}")}


def apply_all(scene: Scene, **spec: object) -> None:
    for n in range(MANY):
        scene.cluster.apply(GPUPODS, f"p{n:02}", gpupod(**spec))


@pytest.mark.parametrize(
    "settings", [{"max_pods": 4}, {"max_hourly_account": PRICE * 4}, {"max_hourly_namespace": "11"}]
)
@pytest.mark.parametrize("mishaps", [{}, {40: Mishap.KILL}, {55: Mishap.KILL, 90: Mishap.KILL, 140: Mishap.LOST}])
def test_of_thirty_who_ask_at_once_four_are_served(settings, mishaps):
    async def play(scene: Scene) -> None:
        scene.points.arm(mishaps)
        apply_all(scene)
        await scene.until(lambda: len(ready(scene)) == 4)
        await scene.pause(timedelta(minutes=6))
        assert len(scene.alive()) == 4
        assert most_at_once(scene) == 4
        others = [scene.status(f"p{n:02}") for n in range(MANY) if f"p{n:02}" not in ready(scene)]
        assert {s["phase"] for s in others} == {"Deferred"}
        told = [next(c for c in s["conditions"] if c["type"] == "SpendAllowed") for s in others]
        assert {c["status"] for c in told} == {"False"}
        assert all("--max-" in c["message"] or "is older" in c["message"] for c in told)

    staged(play, **settings)


def test_room_that_comes_free_goes_to_the_oldest_soon_and_every_one_gets_its_turn():
    async def play(scene: Scene) -> None:
        apply_all(scene)
        served: list[str] = []
        for _ in range(12):
            await scene.until(lambda: len(ready(scene) - set(served)) >= 1)
            one = min(ready(scene) - set(served))
            served.append(one)
            scene.cluster.delete(GPUPODS, one)
        assert most_at_once(scene) <= 4
        assert all(int(b[1:]) <= int(a[1:]) + 12 for a, b in pairwise(served))

    staged(play, max_pods=4)


def test_a_replacement_finds_its_room_kept():
    async def play(scene: Scene) -> None:
        apply_all(scene)
        await scene.until(lambda: len(ready(scene)) == 4)
        one = min(ready(scene))
        before = scene.pod_id(one)
        scene.cluster.annotate(GPUPODS, one, migrate=before)
        await scene.until(lambda: scene.ready(one) and scene.pod_id(one) != before)
        assert most_at_once(scene) == 4

    staged(play, max_pods=4)


def test_a_start_needs_room_as_a_create_does():
    async def play(scene: Scene) -> None:
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(scene.ready)
        await scene.pause(timedelta(minutes=2))
        scene.cluster.edit(GPUPODS, "one", state="Stopped")
        await scene.until(lambda: scene.status()["phase"] == "Stopped")
        scene.cluster.apply(GPUPODS, "two", gpupod())
        await scene.until(lambda: scene.ready("two"))
        scene.cluster.edit(GPUPODS, "one", state="Running")
        await scene.pause(timedelta(minutes=6))
        assert most_at_once(scene) == 1
        allowed = next(c for c in scene.status()["conditions"] if c["type"] == "SpendAllowed")
        assert (allowed["status"], allowed["reason"]) == ("False", "PodCeiling")
        scene.cluster.delete(GPUPODS, "two")
        await scene.until(scene.ready)
        assert most_at_once(scene) == 1

    staged(play, max_pods=1)


def test_a_pod_that_never_fits_waits_for_a_person_and_is_in_nobodys_way():
    async def play(scene: Scene) -> None:
        scene.cluster.apply(GPUPODS, "big", gpupod(placement={"candidates": [{"gpuType": GPU, "count": 2}]}))
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.until(scene.ready)
        stalled = next(c for c in scene.status("big")["conditions"] if c["type"] == "Stalled")
        assert (stalled["status"], stalled["reason"]) == ("True", "AccountCeiling")

    staged(play, max_hourly_account="5")


def test_somebody_elses_pods_count_in_the_account():
    async def play(scene: Scene) -> None:
        await scene.make_by_hand(ports=["22/tcp"])
        scene.cluster.apply(GPUPODS, "one", gpupod())
        await scene.pause(timedelta(minutes=5))
        assert [p.owner for p in scene.alive()] == [None]
        assert scene.status()["phase"] == "Deferred"

    staged(play, max_hourly_account="5")
