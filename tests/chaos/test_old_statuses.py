"""Statuses that another version of the operator wrote: fields that it did not know, or that this one does not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from chaoskit.judge import judged
from chaoskit.operations import OPERATIONS
from chaoskit.scene import Scene
from chaoskit.staging import staged
from gpupod_operator.api.names import GPUPODS

ADDED = (
    "accruedBefore",
    "contacted",
    "drained",
    "launchConfirmed",
    "logs",
    "mayLandUntil",
    "perHour",
    "refused",
    "resumed",
    "restarted",
    "startRequestedAt",
    "unlaunchedStart",
    "waitingSince",
)
"""Fields of `attempt` that the contract does not name: each came with some version."""
FROM_A_POD = sorted(set(OPERATIONS) - {"create", "launch", "create-over-cap", "teardown-at-once"})


def older(status: dict[str, Any]) -> dict[str, Any]:
    attempt = {k: v for k, v in (status.get("attempt") or {}).items() if k not in ADDED}
    return {**{k: v for k, v in status.items() if k != "cost"}, "attempt": attempt}


def newer(status: dict[str, Any]) -> dict[str, Any]:
    attempt = {**(status.get("attempt") or {}), "placementHint": {"rack": 7}}
    surprise = {"type": "Surprised", "status": "True", "reason": "Later", "message": "", "observedGeneration": 1}
    surprise["lastTransitionTime"] = "2026-11-30T09:00:00Z"
    return {**status, "attempt": attempt, "forecast": ["x"], "conditions": [*status["conditions"], surprise]}


@pytest.mark.parametrize("change", [older, newer])
@pytest.mark.parametrize("name", FROM_A_POD)
def test_an_upgrade_and_a_downgrade_go_on_from_what_they_find(name, change):
    operation = OPERATIONS[name]

    async def play(scene: Scene) -> None:
        await operation.prepare(scene)
        await scene.kill()  # it is started again some seconds later
        found = scene.cluster.find(GPUPODS, "one")
        if found is not None and found.get("status"):
            scene.cluster.clone(GPUPODS, {**found, "status": change(found["status"])})
        scene.books.blind = True  # what was paid before is not in the old status
        await scene.pause(timedelta(seconds=20))
        await operation.act(scene)
        await scene.until(lambda: operation.done(scene), operation.within)
        await scene.pause(timedelta(minutes=3))
        await scene.until(lambda: operation.done(scene), timedelta(minutes=10))
        assert judged(scene, operation, faulty=False) == [], scene.story()

    staged(play)
