"""A stage per test: its own API server, vendors without real hosts, and the operator as a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from clusterkit.admin import Admin
from clusterkit.fixtures import admin_of
from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.demo.stage import API, NAMESPACE, Stage, StageOptions
from gpupod_rehearsal.hosts import NamespacesUnavailable
from worldkit.clearing import clear
from worldkit.invariants import broken
from worldkit.money import beyond
from worldkit.processes import processes_show
from worldkit.recorder import Recorder, against_will
from worldkit.rest import restless
from worldkit.rows import vanished

GPU = "NVIDIA H100 80GB HBM3"


class Theatre:
    """The stage, and how a test looks at it."""

    def __init__(self, stage: Stage, admin: Admin) -> None:
        self.stage = stage
        self.admin = admin
        self.recorder = Recorder(stage)
        self.released: set[str] = set()
        """Pods that an object gave up by its deletion policy: neither leaks nor ours any more."""
        self.adopted: set[str] = set()
        """Pods without a stamp that an object was told to take over by their exact id."""

    async def apply(self, name: str = "one", **spec: Any) -> None:
        """A GpuPod that is Ready with its mapping, so that no SSH is needed."""
        whole = {
            "placement": {"candidates": [{"gpuType": GPU}]},
            "container": {"image": "runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04"},
            "health": {"readiness": "Mapping", "startTimeout": "20s", "sshWait": "4s", "wedgeAfter": "5s"},
            "remediation": {"artifacts": "Disposable"},
        }
        body = {"apiVersion": API, "kind": "GpuPod", "metadata": {"name": name}, "spec": whole | spec}
        await self.stage.kube.apply(body, NAMESPACE)

    async def until(self, told: Callable[[dict[str, Any] | None], bool], name: str = "one", within: float = 60) -> Any:
        """The GpuPod once it is as told, by watch."""
        return await self.admin.watch_until("GpuPod", name, told, namespace=NAMESPACE, timeout=within)

    async def alive(self) -> list[dict[str, Any]]:
        """Pods that really exist, whatever the API says."""
        pods = (await self.stage.sim("GET", "/_sim/pods"))["pods"]
        return [p for p in pods if p["alive"]]

    async def creates(self) -> int:
        """POSTs that asked for a pod."""
        found = (await self.stage.sim("GET", "/_sim/requests?method=POST"))["requests"]
        return sum(r["path"].rstrip("/").endswith("/pods") for r in found)

    async def mutations(self) -> list[dict[str, Any]]:
        """Requests that asked the vendor for a change, in order."""
        found = (await self.stage.sim("GET", "/_sim/requests"))["requests"]
        return [r for r in found if r["method"] in ("POST", "PATCH", "DELETE")]

    async def seen(self, told: Callable[[list[dict[str, Any]]], bool], within: float = 40) -> None:
        """Return once the vendor's true state is as told. The vendor has no watch."""
        async with asyncio.timeout(within):
            while not told(await self.alive()):
                await asyncio.sleep(0.05)

    async def lists(self, count: int) -> None:
        """Return once the account was listed `count` times more: that many ticks went by."""
        began = len(await self._listed())
        async with asyncio.timeout(60):
            while len(await self._listed()) < began + count:
                await asyncio.sleep(0.1)

    async def _listed(self) -> list[dict[str, Any]]:
        found = (await self.stage.sim("GET", "/_sim/requests?method=GET"))["requests"]
        return [r for r in found if r["path"].rstrip("/").endswith("/pods")]

    def logs(self) -> str:
        """What every operator process of this test wrote."""
        files = sorted(self.stage.workdir.glob("operator-*.log"))
        return "\n".join(f.read_text(encoding="utf-8", errors="replace") for f in files)

    def all_logs(self) -> str:
        """What anything of this test wrote, the agents on the pods and the workloads included."""
        files = (f for f in sorted(self.stage.workdir.rglob("*.log")) if f.is_file())
        return "\n".join(f.read_text(encoding="utf-8", errors="replace") for f in files)

    async def check(self) -> None:
        """The invariants, at any moment."""
        given = self.released | self.adopted
        books = await self.stage.sim("GET", "/_sim/ledger")
        ledger = [p for p in books["pods"] if p["podId"] not in given]
        requests = (await self.stage.sim("GET", "/_sim/requests"))["requests"]
        objects = await self.stage.kube.items(API, "GpuPod", NAMESPACE)
        secrets = (self.stage.hub_token, self.stage.runpod_key)
        shown = [
            *await self.stage.kube.items("v1", "ConfigMap", NAMESPACE),
            *await self.stage.kube.items("v1", "Event", NAMESPACE),
            *await self.stage.kube.items("events.k8s.io/v1", "Event", NAMESPACE),
            *await self.stage.kube.items(API, "SweepCell", NAMESPACE),
        ]
        sightings = self.recorder.sightings
        found = [
            *broken(ledger, requests, objects, self.all_logs(), secrets, shown),
            *against_will(ledger, requests, sightings),
            *vanished(sightings),
            *beyond(ledger, objects, Decimal(books["billingFactor"]), datetime.now(UTC)),
            *self.recorder.shown,
            *processes_show(secrets, self.recorder.persons),
            *await restless(self.stage),
        ]
        assert found == []


@asynccontextmanager
async def performing(
    plane: ControlPlane, *, hosts: str = "namespace", args: tuple[str, ...] = ()
) -> AsyncIterator[Theatre]:
    """A running world on this control plane; the invariants are checked when the test is over.

    `hosts` null: pods without an inside. `args`: more flags of the operator. Skips where namespaces of pods cannot be
    made.
    """
    options = StageOptions(
        plane=plane,
        observe_every="0.5s",
        say=lambda _: None,
        hosts=hosts,
        operator_args=("--create-settle", "3s", *args),
    )
    async with admin_of(plane) as admin:
        try:
            async with Stage(options) as stage, _judged(Theatre(stage, admin)) as world:
                yield world
        except NamespacesUnavailable as error:
            pytest.skip(str(error))
        finally:
            await clear(admin)


@asynccontextmanager
async def _judged(world: Theatre) -> AsyncIterator[Theatre]:
    following = asyncio.create_task(world.recorder.follow())
    try:
        yield world
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert world.recorder.sightings
        await world.check()
    except BaseException:
        print(world.logs()[-6000:])
        raise
    finally:
        following.cancel()


@pytest.fixture
async def theatre(control_plane: ControlPlane) -> AsyncIterator[Theatre]:
    """A running world whose pods have no inside."""
    async with performing(control_plane, hosts="null") as world:
        yield world


def condition(pod: dict[str, Any] | None, kind: str) -> dict[str, Any]:
    """A condition of the object, empty while it has none."""
    found = ((pod or {}).get("status") or {}).get("conditions") or []
    return next((c for c in found if c["type"] == kind), {})


def is_true(kind: str) -> Callable[[dict[str, Any] | None], bool]:
    """Predicate: the condition is True."""
    return lambda pod: condition(pod, kind).get("status") == "True"


def phase(pod: dict[str, Any] | None) -> str | None:
    """The phase in its status."""
    return ((pod or {}).get("status") or {}).get("phase")


def pod_id(pod: dict[str, Any] | None) -> str | None:
    """The recorded pod."""
    return (((pod or {}).get("status") or {}).get("attempt") or {}).get("podId")
