"""RunPod refuses an order again and again: no storm of calls, the status says who refuses what, and it ends well."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chaoskit.operations import OPERATIONS
from chaoskit.scene import Scene
from chaoskit.staging import staged
from gpupod_rehearsal.runpod.faults import Target

LENGTH = timedelta(minutes=10)
MOST = 12
"""Calls in ten minutes: a refused delete is repeated each minute, since its pod bills; all else grows rarer."""
ORDERS = {
    "create": ("POST", "/v2/pods", "create"),
    "teardown": ("DELETE", "/v2/pods/*", "delete"),
    "migrate-asked": ("DELETE", "/v2/pods/*", "delete"),
    "stop": ("POST", "/v2/pods/*/action", "stop"),
    "start": ("POST", "/v2/pods/*/action", "start"),
    "patch": ("PATCH", "/v2/pods/*", "patch"),
}
ANSWERS = {
    "forbidden": ({}, "Forbidden", "403: access denied"),
    "unauthorized": ({}, "Unauthorized", "401: invalid bearer token"),
    "api-gone-410": ({}, "ProviderAPIGone", "410: This API has been retired."),
    "cloudflare-1010": ({}, "ProviderUnavailable", "Cloudflare refuses this client"),
    "http-500": ({"status": 422}, None, "422: "),
}
"""By fault: what it is armed with, the reason that is shown, and the words of the vendor in the message."""
NOT_FOR_A_PERSON = {"cloudflare-1010"}


@pytest.mark.parametrize("fault", sorted(ANSWERS))
@pytest.mark.parametrize("name", sorted(ORDERS))
def test_a_refused_order_is_told_and_not_stormed(name, fault):
    operation = OPERATIONS[name]
    method, path, verb = ORDERS[name]
    armed, reason, words = ANSWERS[fault]

    async def play(scene: Scene) -> None:
        await operation.prepare(scene)
        before = scene.sim.faults.add(
            fault, target=Target(method=method, path=path), count=-1, duration=LENGTH.total_seconds(), **armed
        )
        sent = len(refused(scene))
        await operation.act(scene)
        await scene.pause(LENGTH - timedelta(seconds=90))
        told = scene.status()["message"]
        assert words in told, told
        assert f" {verb} " in told or (name, fault) == ("create", "http-500"), told
        assert 1 <= len(refused(scene)) - sent <= MOST, scene.story()
        conditions = {c["type"]: c for c in scene.status()["conditions"]}
        if name != "create" or fault != "http-500":
            # a create that is refused for what it asks has a reason of its own
            assert conditions["Stalled"]["status"] == str(fault not in NOT_FOR_A_PERSON), conditions["Stalled"]
        if reason is not None:
            assert reason in {c["reason"] for c in conditions.values()}
        writes = scene.cluster.writes
        await scene.pause(timedelta(seconds=50))
        assert scene.cluster.writes - writes <= 4, "no field ticks while it is refused"
        assert before.hits >= 1
        if (name, fault) == ("create", "http-500"):
            return  # nothing is retried until the spec changes
        await scene.until(lambda: operation.done(scene), operation.within)
        assert (scene.status().get("attempt") or {}).get("refused") is None

    staged(play)


def refused(scene: Scene) -> list[str]:
    return [f"{e.method} {e.path}" for e in scene.sim.journal.mutations() if e.status >= 400]
