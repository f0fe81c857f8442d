"""The demo's world with the operator as a Deployment on the node: installed by kustomize, as the README says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import yaml

from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.demo.stage import NAMESPACE, SYSTEM, Stage, StageOptions
from nodekit.network import NODE_IP, RENTED

ROOT = Path(__file__).parents[2]
DEPLOYMENT = "deployment/gpupod-operator"


class NodeStage(Stage):
    """`async with NodeStage(plane) as stage:`; the operator's pod is Ready on entry. `replicas` of it."""

    def __init__(self, plane: ControlPlane, ctr: Callable[..., str], *, replicas: int = 1) -> None:
        super().__init__(
            StageOptions(
                plane=plane,
                say=lambda _: None,
                runpod_args=("--host", NODE_IP, "--pod-network", RENTED),
                hub_args=("--host", NODE_IP),
            )
        )
        self._ctr = ctr
        self._replicas = replicas

    async def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Its output. Raises RuntimeError with what it said."""
        program = str(self.plane.program("kubectl"))
        order = [program, "--kubeconfig", str(self.kubeconfig), *arguments]
        done = await asyncio.to_thread(
            subprocess.run, order, input=stdin, capture_output=True, text=True, check=False, cwd=ROOT
        )
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()[-2000:]}")
        return str(done.stdout)

    async def pods(self) -> list[dict[str, Any]]:
        """The operator's pods that are not on their way out."""
        found = json.loads(await self.kubectl("-n", SYSTEM, "get", "pods", "-o", "json"))["items"]
        return [p for p in found if "deletionTimestamp" not in p["metadata"]]

    async def logs(self) -> str:
        """What the operator's pods wrote that are still there."""
        return await self.kubectl(
            "-n", SYSTEM, "logs", "-l", "app.kubernetes.io/name=gpupod-operator", "--tail=-1", "--prefix"
        )

    async def leader(self, *, but: str | None = None, within: float = 40) -> str:
        """The name of the pod that holds the Lease, once it is another than `but`."""
        async with asyncio.timeout(within):
            while True:
                lease = json.loads(await self.kubectl("-n", SYSTEM, "get", "lease", "gpupod-operator", "-o", "json"))
                holder = (lease["spec"].get("holderIdentity") or "").rpartition("-")[0]
                if holder and holder != but:
                    return str(holder)
                await asyncio.sleep(0.2)

    @contextlib.asynccontextmanager
    async def holders(self) -> AsyncIterator[list[tuple[float, str]]]:
        """Who holds the Lease, looked at again and again inside of the block: (monotonic seconds, name or nothing)."""
        seen: list[tuple[float, str]] = []

        async def look() -> None:
            while True:
                lease = json.loads(await self.kubectl("-n", SYSTEM, "get", "lease", "gpupod-operator", "-o", "json"))
                seen.append((time.monotonic(), lease["spec"].get("holderIdentity") or ""))
                await asyncio.sleep(0.2)

        looking = asyncio.create_task(look())
        try:
            yield seen
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def container(self, pod: str) -> str:
        """The id of the operator's container in this pod."""
        found = json.loads(await self.kubectl("-n", SYSTEM, "get", "pod", pod, "-o", "json"))
        return str(found["status"]["containerStatuses"][0]["containerID"]).removeprefix("containerd://")

    def kill(self, container: str) -> None:
        """SIGKILL to its first process."""
        tasks = self._ctr("tasks", "ls").splitlines()
        (pid,) = [int(line.split()[1]) for line in tasks if line.startswith(container)]
        os.kill(pid, signal.SIGKILL)

    async def _install(self) -> None:
        key = self.workdir / "runpod.key"
        key.touch(mode=0o600)
        key.write_text(self.runpod_key)
        await self.kubectl("create", "namespace", SYSTEM)
        await self.kubectl("-n", SYSTEM, "create", "secret", "generic", "runpod-api-key", f"--from-file=api-key={key}")
        overlay = self.workdir / "overlay"
        overlay.mkdir()
        (overlay / "kustomization.yaml").write_text(yaml.safe_dump(self._overlay(overlay)))
        await self.kubectl("apply", "-k", str(overlay))
        await self.kubectl("create", "namespace", NAMESPACE)
        token = self.workdir / "hub-token"
        await self.kubectl("-n", NAMESPACE, "create", "secret", "generic", "hf-token", f"--from-file=token={token}")

    def _overlay(self, folder: Path) -> dict[str, Any]:
        """The default overlay with the addresses of this world, and nothing else."""
        env = {
            "GPUPOD_RUNPOD_API": self.runpod_url,
            "GPUPOD_HUB_ENDPOINT": self.hub_url,
            "GPUPOD_OBSERVE_EVERY": "2",
            "GPUPOD_VISIT_EVERY": "2",
            "GPUPOD_SSH_IDENTITY_FILE": str(self.login_folder / "id"),
            "GPUPOD_SSH_KNOWN_HOSTS_FILE": str(self.login_folder / "known_hosts"),
        }
        container = {"name": "operator", "env": [{"name": name, "value": value} for name, value in env.items()]}
        patch = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "gpupod-operator", "namespace": SYSTEM},
            "spec": {"replicas": self._replicas, "template": {"spec": {"containers": [container]}}},
        }
        return {
            "resources": [os.path.relpath(ROOT / "manifests" / "overlays" / "default", folder.resolve())],
            "patches": [{"patch": yaml.safe_dump(patch)}],
        }

    async def _serve(self) -> None:
        try:
            await self.kubectl("-n", SYSTEM, "rollout", "status", DEPLOYMENT, "--timeout=90s")
        except RuntimeError as late:
            seen = await self.kubectl("-n", SYSTEM, "describe", "pods")
            raise RuntimeError(f"{late}\n{seen[-3000:]}\n{await self.logs()}") from late
