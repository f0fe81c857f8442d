"""The chart on the node, in the place of the kustomize install: it serves, and stays while a pod would bill."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from gpupod_rehearsal.demo.stage import API, NAMESPACE, SYSTEM
from helmkit.program import CHART, HelmRefused, helm
from nodekit.enter import FULL
from nodekit.stage import NodeStage

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(FULL not in os.environ, reason="helm is built by make e2e-full"),
]


class Release:
    """The chart, installed in the world of the stage."""

    def __init__(self, stage: NodeStage, home: Path) -> None:
        self.stage, self._home = stage, home

    async def helm(self, *arguments: str) -> str:
        access = ("--kubeconfig", str(self.stage.kubeconfig), "-n", SYSTEM)
        return await asyncio.to_thread(helm, *arguments, *access, home=self._home)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def release(stage: NodeStage, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Release]:
    home = tmp_path_factory.mktemp("helm")
    # the kind goes with the install, and a cell is let go by the operator
    await stage.kubectl("-n", NAMESPACE, "delete", "sweepcells", "--all", "--timeout=60s")
    await stage.kubectl("delete", "-k", "manifests/overlays/default", "--timeout=120s")
    key = stage.workdir / "runpod.key"
    await stage.kubectl("create", "namespace", SYSTEM)
    await stage.kubectl("label", "namespace", SYSTEM, "pod-security.kubernetes.io/enforce=restricted")
    await stage.kubectl("-n", SYSTEM, "create", "secret", "generic", "runpod-api-key", f"--from-file=api-key={key}")
    values = {"settings": {"runpodApi": stage.runpod_url, "hubEndpoint": stage.hub_url, "observeEvery": "2s"}}
    (home / "values.yaml").write_text(yaml.safe_dump(values))
    made = Release(stage, home)
    await made.helm(
        "install", "gpupod-operator", str(CHART), "-f", str(home / "values.yaml"), "--wait", "--timeout=90s"
    )
    yield made


def gpupod() -> str:
    spec = {
        "placement": {"candidates": [{"gpuType": "NVIDIA H100 80GB HBM3"}]},
        "container": {"image": "runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04"},
        "health": {"readiness": "Mapping"},
        "remediation": {"artifacts": "Disposable"},
    }
    return yaml.safe_dump({"apiVersion": API, "kind": "GpuPod", "metadata": {"name": "held"}, "spec": spec})


async def test_an_uninstall_is_refused_while_a_pod_would_bill_and_goes_through_afterwards(release: Release) -> None:
    stage = release.stage
    await stage.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=gpupod())
    await stage.kubectl("-n", NAMESPACE, "wait", "--for=condition=Ready", "gpupod/held", "--timeout=60s")
    with pytest.raises(HelmRefused, match="uninstall-check"):
        await release.helm("uninstall", "gpupod-operator", "--timeout=90s")
    said = await stage.kubectl("-n", SYSTEM, "logs", "job/gpupod-operator-uninstall-check")
    assert f"{NAMESPACE}/held: pod " in said
    assert "costs $2.6968/h" in said
    await stage.kubectl("-n", SYSTEM, "rollout", "status", "deployment/gpupod-operator", "--timeout=30s")

    await stage.kubectl("-n", NAMESPACE, "delete", "gpupod", "held", "--timeout=90s")
    await release.helm("uninstall", "gpupod-operator", "--timeout=90s")
    assert "gpupods.gpupod.dev" in await stage.kubectl("get", "crd", "-o", "name")
    assert "gpupod-operator" not in await stage.kubectl("-n", SYSTEM, "get", "deployments", "-o", "name")
    pods = (await stage.sim("GET", "/_sim/pods"))["pods"]
    assert [pod["podId"] for pod in pods if pod["alive"]] == []
