"""A namespace is deleted with all that is in it, Secrets first: pods end by policy, finalizers go, data is not lost.

The real namespace controller does it. It deletes object by object and never lifts a finalizer.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.demo.stage import API, NAMESPACE, SYSTEM, Stage
from worldkit.fixtures import Theatre, condition, is_true, performing, pod_id
from worldkit.sweep import cell, cell_until, finish, gpupod, repository

PRIVATE = "example-org/private-results"
ACCOUNT = {"secretRef": {"name": "their-runpod", "key": "key"}}


def secret(name: str, key: str, value: str) -> dict[str, Any]:
    """A Secret with one value."""
    data = {key: base64.b64encode(value.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


async def another_account(stage: Stage) -> str:
    """The RunPod key of an account that the operator itself has no key of."""
    file = stage.workdir / "runpod" / "runpod-keys.json"
    keys = json.loads(await asyncio.to_thread(file.read_text, encoding="utf-8"))
    return str(keys["other"])


async def delete_namespace(theatre: Theatre) -> None:
    """As `kubectl delete namespace` does, with the controller that empties it."""
    plane = theatre.stage.plane
    await asyncio.to_thread(plane.start_controllers, ("namespace-controller",), progress=lambda _: None)
    await theatre.admin.delete("Namespace", NAMESPACE)
    for kind, name in (("Secret", "hf-token"), ("ConfigMap", "pods-conf")):
        await theatre.admin.wait_gone(kind, name, namespace=NAMESPACE, timeout=30)


async def namespace_gone(theatre: Theatre, within: float = 60) -> None:
    await theatre.admin.watch_until("Namespace", NAMESPACE, lambda n: n is None, timeout=within)


def calm(theatre: Theatre) -> None:
    """The operator lives, and has not said one thing over and over."""
    assert theatre.stage.operator is not None
    assert theatre.stage.operator.returncode is None
    refused = [line for line in theatre.logs().splitlines() if "being terminated" in line or "is terminating" in line]
    assert len(refused) <= 20, refused[:3]


async def key_copies(theatre: Theatre) -> list[str]:
    """Secrets with copies of keys that the operator still keeps."""
    found = await theatre.admin.list("Secret", namespace=SYSTEM)
    return [s["metadata"]["name"] for s in found if s["metadata"]["name"].startswith("keys-")]


async def three_pods(theatre: Theatre) -> dict[str, str]:
    """One GpuPod for each deletion policy, in an account whose key lies only in the namespace; their pods."""
    await theatre.stage.kube.apply(secret("their-runpod", "key", await another_account(theatre.stage)), NAMESPACE)
    pods = {}
    for policy in ("Terminate", "Stop", "Orphan"):
        await theatre.apply(policy.lower(), deletionPolicy=policy, account=ACCOUNT)
    for policy in ("terminate", "stop", "orphan"):
        ready = await theatre.until(lambda p: is_true("Ready")(p) and is_true("Registered")(p), policy)
        pods[policy] = str(pod_id(ready))
    theatre.released |= {pods["stop"], pods["orphan"]}
    return pods


async def ends(theatre: Theatre, pods: dict[str, str]) -> None:
    """What each policy leaves, and by whose key it was done."""
    states = {p["podId"]: p["status"] for p in (await theatre.stage.sim("GET", "/_sim/pods"))["pods"]}
    assert states == {pods["terminate"]: "TERMINATED", pods["stop"]: "EXITED", pods["orphan"]: "RUNNING"}
    requests = (await theatre.stage.sim("GET", "/_sim/requests"))["requests"]
    assert {r["key"] for r in requests if r["method"] in ("POST", "DELETE")} == {"other"}
    assert await theatre.creates() == 3
    assert await another_account(theatre.stage) not in theatre.logs()


async def test_pods_of_a_deleted_namespace_end_by_policy_with_a_key_that_is_gone(theatre: Theatre) -> None:
    pods = await three_pods(theatre)
    await theatre.stage.kube.apply(cell("podless", pod="never-made"), NAMESPACE)
    await cell_until(theatre, "podless", lambda c: condition(c, "Ready").get("reason") == "PodNotFound")
    await delete_namespace(theatre)
    await namespace_gone(theatre)
    await ends(theatre, pods)
    assert await key_copies(theatre) == []
    calm(theatre)


async def test_an_operator_that_starts_into_a_terminating_namespace_ends_its_pods(theatre: Theatre) -> None:
    pods = await three_pods(theatre)
    assert theatre.stage.operator is not None
    theatre.stage.operator.kill()
    await theatre.stage.operator.wait()
    await delete_namespace(theatre)
    assert len(await theatre.admin.list("GpuPod", namespace=NAMESPACE)) == 3, "finalizers hold them"
    await theatre.stage.start_operator()
    await namespace_gone(theatre)
    await ends(theatre, pods)
    assert await key_copies(theatre) == []
    calm(theatre)


@pytest.fixture
async def real(control_plane: ControlPlane) -> AsyncIterator[Theatre]:
    """A world whose pods have files, processes and SSH."""
    async with performing(control_plane) as theatre:
        yield theatre


async def hub_fault(stage: Stage, **fault: Any) -> None:
    async with stage.session.post(f"{stage.hub_url}/_hub/faults", json=fault) as answer:
        answer.raise_for_status()


async def test_results_that_are_not_on_the_hub_yet_hold_a_deleted_namespace_until_they_are(real: Theatre) -> None:
    stage = real.stage
    await repository(stage, PRIVATE, private=True)
    await stage.kube.apply(secret("their-runpod", "key", await another_account(stage)), NAMESPACE)
    await hub_fault(stage, name="status_before", operation="commit", repo=PRIVATE, times=2, status=503)
    await stage.kube.apply(cell("late", repo=PRIVATE), NAMESPACE)
    await stage.kube.apply(gpupod((finish("late"),), account=ACCOUNT), NAMESPACE)
    await cell_until(real, "late", is_true("Produced"))
    pod = pod_id(await real.until(is_true("Ready"), "sweep"))
    await delete_namespace(real)
    held = await cell_until(real, "late", lambda c: condition(c, "Ready").get("reason") == "TeardownBlocked")
    assert f"pod {pod} may hold it" in condition(held, "Ready")["message"]
    assert [p["podId"] for p in await real.alive()] == [pod]
    await namespace_gone(real, within=120)
    assert await real.alive() == []
    commits = await stage.hub(f"/_hub/repos/datasets/{PRIVATE}/commits")
    assert [c["title"] for c in commits if c["title"].startswith("cell ")] == ["cell late"]
    assert await key_copies(real) == []
    calm(real)


async def test_results_that_land_nowhere_hold_a_deleted_namespace_until_they_are_given_up(real: Theatre) -> None:
    stage = real.stage
    await repository(stage, "somebody/theirs")
    await stage.kube.apply(cell("lost", repo="somebody/theirs"), NAMESPACE)
    await stage.kube.apply(gpupod((finish("lost"),)), NAMESPACE)
    await cell_until(real, "lost", lambda c: condition(c, "Ready").get("reason") == "HubForbidden")
    pod = pod_id(await real.until(is_true("Ready"), "sweep"))
    await delete_namespace(real)
    held = await real.until(lambda p: "Delete of pod" in ((p or {}).get("status") or {}).get("message", ""), "sweep")
    assert f'gpupod.dev/abandon-data: "{pod}:' in held["status"]["message"]
    await real.lists(10)
    again = await real.admin.get("GpuPod", "sweep", namespace=NAMESPACE)
    assert again["metadata"]["resourceVersion"] == held["metadata"]["resourceVersion"], "said once"
    assert [p["podId"] for p in await real.alive()] == [pod]
    body = {"metadata": {"annotations": {"gpupod.dev/abandon-data": f"{pod}: a trial"}}}
    await real.admin.patch("GpuPod", "sweep", body, namespace=NAMESPACE)
    await namespace_gone(real)
    assert await real.alive() == []
    assert await stage.kube.items(API, "SweepCell", NAMESPACE) == []
    calm(real)
