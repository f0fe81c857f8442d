"""The world of the bench: a real API server with an audit log, an instant provider, the operator as in production."""

import asyncio
import json
import socket
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml

from bench.audit import Audit
from clusterkit.admin import Admin
from clusterkit.fixtures import admin_of
from gpupod_rehearsal.controlplane import ControlPlane, ProgressLine
from gpupod_rehearsal.demo import manifests
from gpupod_rehearsal.demo.kube import Kube
from gpupod_rehearsal.demo.processes import Child, announced, start

SYSTEM = "gpupod-system"
ACCOUNT = "gpupod-operator"
API = "gpupod.dev/v1alpha1"
GPU = "NVIDIA H100 80GB HBM3"
PER_HOST = 8
INSTANT = {"placement": 0, "pull": 0, "cachedPull": 0, "mapping": 0, "pullLogEvery": 60, "balanceJob": 3600}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is varied. `observe` in seconds; `profile` is "cpu", "memory" or None."""

    pods: int
    namespaces: int
    observe: float
    profile: str | None = None
    keep: Path | None = None
    probes: int = 5


class Stage:
    """`async with Stage(plan)`: the operator is not started yet. Ends everything that it started."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.namespaces = [f"bench-{n}" for n in range(plan.namespaces)]
        self.operator: Child | None = None
        self._stack = AsyncExitStack()
        self._number = 0

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _open(self) -> None:
        if self.plan.keep is None:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="gpupod-bench-"))
            self.workdir = Path(folder)
        else:
            self.workdir = self.plan.keep
            self.workdir.mkdir(parents=True, exist_ok=True)
        self.audit = Audit(self.workdir / "audit", f"system:serviceaccount:{SYSTEM}:{ACCOUNT}")
        line = ProgressLine()
        launch = ControlPlane.start(
            self.workdir / "control-plane", progress=line, apiserver_args=self.audit.apiserver_args
        )
        self.plane = await self._stack.enter_async_context(launch)
        line.close()
        self.session = await self._stack.enter_async_context(aiohttp.ClientSession())
        self.admin: Admin = await self._stack.enter_async_context(admin_of(self.plane))
        await self._install()
        await self._vendor()

    async def _install(self) -> None:
        kube = Kube(self.plane.access)
        try:
            for manifest in manifests.crds():
                await kube.apply(manifest)
            for name in (SYSTEM, *self.namespaces):
                await kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            for manifest in manifests.rbac():
                namespaced = not manifest["kind"].startswith("Cluster")
                await kube.apply(manifest, manifest["metadata"].get("namespace", SYSTEM) if namespaced else None)
            for kind in ("GpuPod", "SweepCell"):
                await kube.served(API, kind)
        finally:
            kube.close()

    async def _vendor(self) -> None:
        hosts = [
            {"id": f"host-{n}", "dataCenter": "US-KS-2", "gpuType": GPU, "gpus": PER_HOST}
            for n in range(self.plan.pods // PER_HOST + 8)
        ]
        rich = {"id": "acct_main", "balance": 10**9, "spendLimit": 10**6, "keys": [{"alias": "main"}]}
        scenario = self.workdir / "scenario.yaml"
        scenario.write_text(
            yaml.safe_dump({"accounts": [rich], "hosts": hosts, "timings": INSTANT, "quotas": {"minute": 10**6}})
        )
        self.vendor = await start(
            "runpod",
            [
                *("-m", "gpupod_rehearsal.runpod", "--workdir", str(self.workdir / "runpod")),
                *("--hosts", "null", "--scenario", str(scenario)),
            ],
            self.workdir,
        )
        self._stack.push_async_callback(self.vendor.end)
        ready = await announced(self.vendor)
        self.runpod_url = ready["url"]
        self.key_file = self.workdir / "runpod-key"
        self.key_file.touch(mode=0o600)
        self.key_file.write_text(json.loads(Path(ready["keysFile"]).read_text())["main"])

    async def start_operator(self) -> Child:
        """The production process, under its ServiceAccount."""
        self._number += 1
        name = f"operator-{self._number}"
        env = self.plane.access.in_cluster_env(self.workdir / name, namespace=SYSTEM, service_account=ACCOUNT)
        program = ["-m", "gpupod_operator"]
        if self.plan.profile is not None:
            profile = self.workdir / f"{name}.{self.plan.profile}"
            program = [str(Path(__file__).with_name("profiled.py")), self.plan.profile, str(profile)]
        self.health_port, self.metrics_port = _free_port(), _free_port()
        child = await start(
            name,
            [
                *program,
                "run",
                *("--runpod-api", self.runpod_url),
                *("--hub-endpoint", "http://127.0.0.1:1"),
                *("--runpod-key-file", str(self.key_file)),
                *("--namespace", SYSTEM),
                *("--observe-every", f"{self.plan.observe:g}s"),
                *("--health-host", "127.0.0.1"),
                *("--health-port", str(self.health_port)),
                *("--metrics-port", str(self.metrics_port)),
            ],
            self.workdir,
            env=env,
        )
        self._stack.push_async_callback(child.end)
        self.operator = child
        return child

    async def leading(self) -> None:
        """Return once the operator holds the Lease and watches (at most 60 s)."""
        async with asyncio.timeout(60):
            while True:
                self.alive()
                try:
                    async with self.session.get(f"http://127.0.0.1:{self.health_port}/readyz") as answer:
                        if answer.status == 200 and (await answer.text()).strip() == "leading":
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.05)

    def alive(self) -> None:
        """Raises RuntimeError with the end of its log when the operator has ended."""
        assert self.operator is not None
        if self.operator.returncode is not None:
            raise RuntimeError(f"the operator ended: {self.operator.log.read_text()[-3000:]}")

    async def calls(self, since: int = 0) -> list[dict[str, Any]]:
        """Requests that the provider got, from the one with this number on."""
        async with self.session.get(f"{self.runpod_url}/_sim/requests", params={"since": str(since)}) as answer:
            answer.raise_for_status()
            return list((await answer.json())["requests"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
