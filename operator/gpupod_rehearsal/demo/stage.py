"""The rehearsal world of the demo: control plane, two vendors, the operator as a process under its ServiceAccount."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.demo import manifests
from gpupod_rehearsal.demo.guest import API, NAMESPACE, SYSTEM, NotThisCluster, refuse_if_used, take_away
from gpupod_rehearsal.demo.kube import Kube
from gpupod_rehearsal.demo.processes import Child, announced, start

__all__ = ["API", "NAMESPACE", "SYSTEM", "NotThisCluster", "Stage", "StageOptions"]

BILLING_FACTOR = 60
"""The simulated cloud bills each second as a minute, so that a two-minute demo shows the money of two hours."""


@dataclass(frozen=True, slots=True)
class StageOptions:
    """What a demo or a test varies."""

    kubeconfig: Path | None = None
    plane: ControlPlane | None = None
    """A control plane that runs already and is the caller's to clear and to end, our CRDs in it or not."""
    observe_every: str = "2s"
    say: Callable[[str], None] = print
    operator_args: tuple[str, ...] = ()
    hosts: str = "namespace"
    billing_factor: int = BILLING_FACTOR
    runpod_args: tuple[str, ...] = ()
    hub_args: tuple[str, ...] = ()
    """More flags of the vendors: where they listen, for example."""


class Stage:
    """`async with Stage(options) as stage:`; whatever was started is ended, in the right order, also on Ctrl-C."""

    def __init__(self, options: StageOptions) -> None:
        self.options = options
        self.workdir = Path()
        self.runpod_url = ""
        self.hub_url = ""
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.plane.access.kubeconfig

    @property
    def login_folder(self) -> Path:
        """Where the rendered ssh_config finds the key and the known hosts."""
        return self.workdir / "login"

    async def _open(self) -> None:
        folder = self._stack.enter_context(
            tempfile.TemporaryDirectory(prefix="gpupod-demo-", ignore_cleanup_errors=True)
        )
        self.workdir = Path(folder)
        await self._control_plane()
        self.session = await self._stack.enter_async_context(aiohttp.ClientSession())
        await self._vendors()
        await self._install()
        await self._serve()

    async def _control_plane(self) -> None:
        say = self.options.say
        if self.options.plane is not None:
            self.plane = self.options.plane
        elif self.options.kubeconfig is not None:
            self.plane = ControlPlane.attach(self.options.kubeconfig)
        else:
            say("control plane: starting etcd and kube-apiserver")
            launch = ControlPlane.start(self.workdir / "control-plane", progress=say)
            self.plane = await self._stack.enter_async_context(launch)
        self.kube = Kube(self.plane.access)
        self._stack.callback(self.kube.close)
        if self.options.kubeconfig is not None:
            await refuse_if_used(self.kube)
            self._stack.push_async_callback(take_away, self.kube)

    async def _vendors(self) -> None:
        self.options.say("vendors: starting the simulated RunPod and Hub")
        self.hub_token = f"hf_{secrets.token_hex(17)}"
        token_file = self.workdir / "hub-token"
        token_file.touch(mode=0o600)
        token_file.write_text(self.hub_token, encoding="utf-8")
        runpod = await start(
            "runpod",
            [
                "-m",
                "gpupod_rehearsal.runpod",
                "--workdir",
                str(self.workdir / "runpod"),
                "--billing-factor",
                str(self.options.billing_factor),
                "--hosts",
                self.options.hosts,
                *self.options.runpod_args,
            ],
            self.workdir,
        )
        self._stack.push_async_callback(runpod.end)
        hub = await start(
            "hub",
            [
                "-m",
                "gpupod_rehearsal.hub",
                "--workdir",
                str(self.workdir / "hub"),
                "--token",
                f"researcher=file:{token_file}",
                "--org",
                "example-org=researcher",
                "--repo",
                "dataset:example-org/sweep-results",
                *self.options.hub_args,
            ],
            self.workdir,
        )
        self._stack.push_async_callback(hub.end)
        ready = await announced(runpod)
        self.runpod_url = ready["url"]
        keys = json.loads(await asyncio.to_thread(Path(ready["keysFile"]).read_text, encoding="utf-8"))
        self.runpod_key = next(iter(keys.values()))
        self.hub_url = (await announced(hub))["url"]

    async def _install(self) -> None:
        self.options.say("cluster: applying CRDs, RBAC and Secrets")
        kube = self.kube
        for manifest in manifests.crds():
            await kube.apply(manifest)
        for name in (SYSTEM, NAMESPACE):
            await kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for manifest in manifests.rbac():
            namespaced = not manifest["kind"].startswith("Cluster")
            await kube.apply(manifest, manifest["metadata"].get("namespace", SYSTEM) if namespaced else None)
        token = base64.b64encode(self.hub_token.encode()).decode()
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hf-token"}, "data": {"token": token}}
        await kube.apply(secret, NAMESPACE)
        for kind in ("GpuPod", "SweepCell"):
            await kube.served(API, kind)

    async def _serve(self) -> None:
        """Return once an operator runs, or is about to."""
        await self.start_operator()

    async def start_operator(self, *extra: str) -> Child:
        """The production process on the real clock, logged in as in a pod."""
        self._number += 1
        name = f"operator-{self._number}"
        key_file = self.workdir / "runpod-key"
        key_file.touch(mode=0o600)
        key_file.write_text(self.runpod_key, encoding="utf-8")
        env = self.plane.access.in_cluster_env(self.workdir / name, namespace=SYSTEM, service_account="gpupod-operator")
        child = await start(
            name,
            [
                "-m",
                "gpupod_operator",
                "run",
                "--runpod-api",
                self.runpod_url,
                "--hub-endpoint",
                self.hub_url,
                "--runpod-key-file",
                str(key_file),
                "--namespace",
                SYSTEM,
                "--observe-every",
                self.options.observe_every,
                "--visit-every",
                self.options.observe_every,
                "--health-host",
                "127.0.0.1",
                "--health-port",
                "0",
                "--metrics-port",
                "-1",
                "--ssh-identity-file",
                str(self.login_folder / "id"),
                "--ssh-known-hosts-file",
                str(self.login_folder / "known_hosts"),
                *self.options.operator_args,
                *extra,
            ],
            self.workdir,
            env=env,
        )
        self._stack.push_async_callback(child.end)
        self.operator = child
        return child

    async def sim(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the simulated RunPod's own interface (`/_sim/...`)."""
        async with self.session.request(method, self.runpod_url + path, json=body) as answer:
            answer.raise_for_status()
            return await answer.json()

    async def hub(self, path: str) -> Any:
        """Ask the simulated Hub's own interface (`/_hub/...`)."""
        async with self.session.get(self.hub_url + path) as answer:
            answer.raise_for_status()
            return await answer.json()
