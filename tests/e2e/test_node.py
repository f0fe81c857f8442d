"""The operator's image on a real node: installed by kustomize, restricted, and the demo through it."""

from __future__ import annotations

import asyncio
import json
import time
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from gpupod_rehearsal.demo.acts import play
from gpupod_rehearsal.demo.report import make_report
from gpupod_rehearsal.demo.stage import API, NAMESPACE, SYSTEM
from gpupod_rehearsal.demo.table import Screen
from nodekit import audit
from nodekit.stage import DEPLOYMENT, ROOT, NodeStage

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def test_its_pods_are_ready_under_the_restricted_policy(stage: NodeStage) -> None:
    labels = json.loads(await stage.kubectl("get", "namespace", SYSTEM, "-o", "json"))["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    pods = await stage.pods()
    assert len(pods) == 2
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert pod["spec"]["serviceAccountName"] == "gpupod-operator"
        assert container["resources"]["requests"]
        assert container["resources"]["limits"]["memory"]
        assert pod["status"]["containerStatuses"][0]["ready"]
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    with pytest.raises(RuntimeError, match="violates PodSecurity"):
        await stage.kubectl("-n", SYSTEM, "run", "loose", "--image=gpupod.dev/pause:1")


async def test_one_sweep_one_wedged_host_nothing_lost(stage: NodeStage) -> None:
    with Screen(Console(file=StringIO())) as screen:
        story = await play(stage, screen)
    report = await make_report(stage, story)
    assert report.problems == []
    assert (report.verified, report.commits, report.lost) == (16, 16, [])
    assert report.leaked == Decimal(0)
    assert len(report.pods) == 2
    assert story.cause == "PortLost"
    assert story.login is not None
    assert "logged in as root" in story.login
    logs = await stage.logs()
    assert "creating a pod" in logs
    assert not [s for s in (stage.hub_token, stage.runpod_key) if s in logs]


async def test_a_leader_that_is_killed_hands_over_and_no_pod_is_made_twice(stage: NodeStage) -> None:
    names = [f"burst-{number}" for number in range(6)]
    await stage.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin="---\n".join(map(_gpupod, names)))
    first = await stage.leader()
    stage.kill(await stage.container(first))
    began = time.monotonic()
    assert await stage.leader(but=first) != first
    assert time.monotonic() - began <= 20
    wait = ("wait", "--for=condition=Ready", *(f"gpupod/{name}" for name in names), "--timeout=90s")
    await stage.kubectl("-n", NAMESPACE, *wait)
    await _one_each(stage, names)


async def test_a_rolling_update_gives_the_lease_back_and_the_next_one_takes_it_at_once(stage: NodeStage) -> None:
    old = {pod["metadata"]["name"] for pod in await stage.pods()}
    async with stage.holders() as seen:
        await stage.kubectl("-n", SYSTEM, "rollout", "restart", DEPLOYMENT)
        await stage.kubectl("-n", SYSTEM, "rollout", "status", DEPLOYMENT, "--timeout=120s")
        while (await stage.leader()) in old:
            await asyncio.sleep(0.2)
    assert not old & {pod["metadata"]["name"] for pod in await stage.pods()}
    nobody = [at for at, holder in seen if not holder]
    assert len(nobody) <= 1 or max(nobody) - min(nobody) <= 12, "given back, and not waited for"
    gone = json.loads(await stage.kubectl("-n", SYSTEM, "get", "events", "-o", "json"))["items"]
    assert not [e["message"] for e in gone if "Back-off" in e["message"]]
    await _one_each(stage, [f"burst-{number}" for number in range(6)])


async def test_a_drain_never_takes_both(stage: NodeStage) -> None:
    drain = ("drain", "node", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=15s")
    with pytest.raises(RuntimeError, match="disruption budget"):
        await stage.kubectl(*drain)
    ready = [p for p in await stage.pods() if any(c.get("ready") for c in p["status"].get("containerStatuses") or ())]
    assert len(ready) == 1
    await stage.kubectl("uncordon", "node")
    await stage.kubectl("-n", SYSTEM, "rollout", "status", DEPLOYMENT, "--timeout=120s")


async def test_what_is_deleted_is_gone_and_nothing_bills(stage: NodeStage) -> None:
    await stage.kubectl("-n", NAMESPACE, "delete", "gpupods", "--all", "--timeout=120s")
    pods = (await stage.sim("GET", "/_sim/pods"))["pods"]
    assert [pod["podId"] for pod in pods if pod["alive"]] == []


async def test_every_right_is_used_and_none_is_missing(stage: NodeStage, folder: Path) -> None:
    rights = list(audit.granted(yaml.safe_load_all((ROOT / "manifests" / "base" / "rbac.yaml").read_text())))
    assert len(rights) > 20
    events = audit.read(folder)
    assert audit.refused(events) == []
    assert audit.unused(rights, events) == []


def _gpupod(name: str) -> str:
    spec = {
        "placement": {"candidates": [{"gpuType": "NVIDIA H100 80GB HBM3"}]},
        "container": {"image": "runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04"},
        "health": {"readiness": "Mapping"},
        "remediation": {"artifacts": "Disposable"},
    }
    return yaml.safe_dump({"apiVersion": API, "kind": "GpuPod", "metadata": {"name": name}, "spec": spec})


async def _one_each(stage: NodeStage, names: list[str]) -> None:
    """By the vendor's own books: one pod was ever made for each, and it lives."""
    made = [pod for pod in (await stage.sim("GET", "/_sim/pods"))["pods"] if "/burst-" in (pod["owner"] or "")]
    assert sorted(pod["owner"].split("/")[2] for pod in made) == names
    assert all(pod["alive"] for pod in made)
