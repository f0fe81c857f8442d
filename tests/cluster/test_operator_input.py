"""Bad input ends in a condition that says what to do: no create call, no crash, no storm."""

import asyncio
import json

import pytest

from gpupod_rehearsal.demo.stage import API, NAMESPACE
from worldkit.fixtures import Theatre, condition, is_true, pod_id


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"placement": {"candidates": [{"gpuType": "NVIDIA H100 80GB HBM4"}]}}, "UnknownGpuType", "did you mean"),
        ({"account": {"secretRef": {"name": "nowhere", "key": "k"}}}, "SecretNotFound", "create it there"),
        ({"account": {"secretRef": {"name": "hf-token", "key": "k"}}}, "SecretKeyMissing", "add it"),
        ({"account": {"secretRef": {"name": "hf-token", "key": "token"}}}, "Unauthorized", "put a valid one"),
        ({"volume": {"network": {"volumeId": "nosuchvolume"}}}, "VolumeNotFound", "correct spec.volume"),
    ],
)
async def test_insane_input_is_named_before_any_create(theatre: Theatre, spec, reason: str, words: str) -> None:
    await theatre.apply(**spec)
    pod = await theatre.until(lambda p: condition(p, "Stalled").get("status") == "True")
    stalled = condition(pod, "Stalled")
    assert stalled["reason"] == reason
    assert words in stalled["message"]
    assert condition(pod, "Ready")["status"] == "False"
    assert await theatre.creates() == 0
    assert theatre.stage.operator is not None
    assert theatre.stage.operator.returncode is None


async def test_allow_paid_false_makes_no_call_that_costs(theatre: Theatre) -> None:
    """S18"""
    await theatre.apply(spend={"allowPaid": False})
    pod = await theatre.until(lambda p: ((p or {}).get("status") or {}).get("phase") == "Deferred")
    assert condition(pod, "Provisioned")["reason"] == "NoComputeAvailable"
    assert await theatre.creates() == 0


async def test_two_objects_cannot_publish_one_name(theatre: Theatre) -> None:
    await theatre.apply("one", podsConf={"name": "shared"})
    await theatre.until(is_true("Registered"))
    await theatre.apply("two", podsConf={"name": "shared"})
    younger = await theatre.until(lambda p: condition(p, "Registered").get("reason") == "NameConflict", "two")
    assert "one" in condition(younger, "Registered")["message"]


async def test_at_rest_nothing_is_written_anywhere(theatre: Theatre) -> None:
    """I9"""
    await theatre.apply()
    ready = await theatre.until(lambda p: is_true("Ready")(p) and is_true("Registered")(p))
    before = (await theatre.stage.sim("GET", "/_sim/requests"))["count"]
    await lists(theatre, before, 8)
    after = await theatre.admin.get("GpuPod", "one", namespace=NAMESPACE)
    assert after["metadata"]["resourceVersion"] == ready["metadata"]["resourceVersion"]
    done = (await theatre.stage.sim("GET", f"/_sim/requests?since={before}"))["requests"]
    assert {r["method"] for r in done} == {"GET"}


async def lists(theatre: Theatre, since: int, count: int) -> None:
    """Return once the account was listed `count` times more: that many ticks went by."""
    async with asyncio.timeout(60):
        while (await theatre.stage.sim("GET", "/_sim/requests"))["count"] < since + count:
            await asyncio.sleep(0.1)


async def test_state_stopped_and_back_keeps_the_pod(theatre: Theatre) -> None:
    await theatre.apply()
    first = pod_id(await theatre.until(is_true("Ready")))
    await theatre.apply(state="Stopped")
    await theatre.until(lambda p: ((p or {}).get("status") or {}).get("phase") == "Stopped")
    await theatre.apply(state="Running")
    again = await theatre.until(is_true("Ready"))
    assert pod_id(again) == first
    assert await theatre.creates() == 1


async def test_a_foreign_pod_is_neither_adopted_nor_touched(theatre: Theatre) -> None:
    """S17"""
    await theatre.stage.sim("POST", "/_sim/foreign", {"name": "one"})
    await theatre.apply()
    pod = await theatre.until(is_true("Ready"))
    assert len(await theatre.alive()) == 2
    await theatre.stage.kube.delete(API, "GpuPod", "one", NAMESPACE)
    await theatre.admin.wait_gone("GpuPod", "one", namespace=NAMESPACE, timeout=60)
    assert [p["podId"] for p in await theatre.alive()] != [pod_id(pod)]
    assert len(await theatre.alive()) == 1


async def test_a_key_of_another_team_sees_nothing_and_ends_nothing(theatre: Theatre) -> None:
    """S20: to it every pod is a 404 and the account is empty."""
    await theatre.apply()
    first = pod_id(await theatre.until(is_true("Ready")))
    stage = theatre.stage
    keys = json.loads((stage.workdir / "runpod" / "runpod-keys.json").read_text(encoding="utf-8"))
    key_file = stage.workdir / "runpod-key"
    key_file.write_text(keys["other"], encoding="utf-8")
    held = await theatre.until(lambda p: condition(p, "ProviderObserved").get("reason") == "AccountMismatch")
    assert "Put back a key of the recorded account" in condition(held, "Stalled")["message"]
    await stage.kube.delete(API, "GpuPod", "one", NAMESPACE)
    await theatre.until(lambda p: bool((p or {})["metadata"].get("deletionTimestamp")))
    await theatre.lists(6)
    assert [p["podId"] for p in await theatre.alive()] == [first]
    assert await theatre.creates() == 1
    key_file.write_text(stage.runpod_key, encoding="utf-8")
    await theatre.admin.wait_gone("GpuPod", "one", namespace=NAMESPACE, timeout=90)
    await theatre.seen(lambda pods: pods == [])
