"""With Roles alone: one namespace is served, nothing of the cluster is asked for, and what cannot be known is said."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.demo import manifests
from gpupod_rehearsal.demo.processes import Child
from gpupod_rehearsal.demo.stage import API, SYSTEM, Stage, StageOptions
from worldkit.fixtures import GPU, is_true

ROOT = Path(__file__).parents[2]
SERVED = "gpupods"


class Namespaced(Stage):
    """The overlay's Roles, and the flags of its Deployment."""

    async def _install(self) -> None:
        kustomize = [str(self.plane.program("kubectl")), "kustomize", str(ROOT / "manifests/overlays/namespaced")]
        done = await asyncio.to_thread(subprocess.run, kustomize, capture_output=True, text=True, check=True)
        rendered = [m for m in yaml.safe_load_all(done.stdout) if m]
        assert not [m for m in rendered if m["kind"].startswith("ClusterRole")]
        (deployment,) = [m for m in rendered if m["kind"] == "Deployment"]
        self.flags: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"][1:]
        for manifest in manifests.crds():
            await self.kube.apply(manifest)
        for name in (SYSTEM, SERVED, "other"):
            await self.kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for manifest in rendered:
            if manifest["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
                await self.kube.apply(manifest, manifest["metadata"]["namespace"])
        for kind in ("GpuPod", "SweepCell"):
            await self.kube.served(API, kind)

    async def start_operator(self, *extra: str) -> Child:
        return await super().start_operator(*(extra or self.flags))


@asynccontextmanager
async def stage_of(folder: Path) -> AsyncIterator[Namespaced]:
    async with (
        ControlPlane.start(folder / "control-plane", progress=lambda _: None) as plane,
        Namespaced(StageOptions(plane=plane, observe_every="0.5s", say=lambda _: None, hosts="null")) as stage,
    ):
        yield stage


def _pod() -> dict[str, Any]:
    spec = {
        "placement": {"candidates": [{"gpuType": GPU}]},
        "container": {"image": "runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04"},
        "health": {"readiness": "Mapping"},
        "remediation": {"artifacts": "Disposable"},
    }
    return {"apiVersion": API, "kind": "GpuPod", "metadata": {"name": "one"}, "spec": spec}


async def _until(stage: Stage, told: Any, kind: str = "GpuPod", name: str = "one") -> Any:
    async with asyncio.timeout(60):
        while not told(seen := await stage.kube.get(API if kind == "GpuPod" else "v1", kind, name, SERVED)):
            await asyncio.sleep(0.1)
    return seen


async def test_a_pod_is_made_and_ended_in_the_served_namespace_and_no_right_is_missed(tmp_path: Path) -> None:
    async with stage_of(tmp_path) as stage:
        for namespace in (SERVED, "other"):
            await stage.kube.apply(_pod(), namespace)
        await _until(stage, is_true("Ready"))
        await _until(stage, lambda conf: conf is not None, "ConfigMap", "pods-conf")
        await stage.kube.delete(API, "GpuPod", "one", SERVED)
        await _until(stage, lambda pod: pod is None)
        pods = (await stage.sim("GET", "/_sim/pods"))["pods"]
        assert [p["alive"] for p in pods] == [False]
        untouched = await stage.kube.get(API, "GpuPod", "one", "other")
        assert untouched is not None
        assert "status" not in untouched
        assert "finalizers" not in untouched["metadata"]
        assert stage.operator is not None
        log = stage.operator.log.read_text()
        assert not [line for line in log.splitlines() if "forbidden" in line.lower()]


async def test_without_an_instance_id_it_ends_with_what_to_do(tmp_path: Path) -> None:
    async with stage_of(tmp_path) as stage:
        assert stage.operator is not None
        await stage.operator.end()
        second = await stage.start_operator("--watch-namespace", SERVED)
        assert await asyncio.wait_for(second.wait(), 60) == 2
        assert "set --instance-id" in second.log.read_text().splitlines()[-1]
