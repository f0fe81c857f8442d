"""A vendor, a cluster, the insides of pods, and an operator that is started again whenever it dies."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import itertools
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import aiohttp

from chaoskit.clock import START, LoopClock, OwnClock
from chaoskit.cluster import MemoryCluster, Raw
from chaoskit.hosts import Hosts
from chaoskit.hub import EmptyHub
from chaoskit.money import Books
from chaoskit.points import OF_THE_WATCH, WRITES, Mishap, Points
from chaoskit.process import OperatorProcess, owning_tasks
from chaoskit.sweep import KeepingHub, Sweep
from gpupod_operator.api.names import GPUPODS
from gpupod_operator.ports import ApiConflict, ApiUnavailable
from gpupod_operator.runtime.settings import Settings
from gpupod_rehearsal.runpod.clock import VirtualClock
from gpupod_rehearsal.runpod.pod import SimPod
from gpupod_rehearsal.runpod.simulator import RunPodSimulator

RESTART = 5.0
"""Seconds until a dead operator is started again."""
OUTAGE = timedelta(minutes=10)
GPU = "NVIDIA H100 80GB HBM3"


def gpupod(**changes: Any) -> dict[str, Any]:
    """A spec whose data may be lost, Ready with its mapping; a dict is merged into its section."""
    spec: dict[str, Any] = {
        "placement": {"candidates": [{"gpuType": GPU}]},
        "container": {"image": "runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04"},
        "remediation": {"artifacts": "Disposable"},
    }
    for name, value in changes.items():
        spec[name] = {**spec.get(name, {}), **value} if isinstance(value, dict) else value
    return spec


class Scene:
    """`async with Scene(folder) as scene:` on a loop of virtual time. `settings` are the operator's flags.

    `beside`: another cluster whose operator has a key of the same account. `cells`: so many are declared for GpuPod
    `one`, whose workload then finishes them one after another.
    """

    def __init__(
        self, folder: Path, seed: int = 0, beside: Scene | None = None, cells: int = 0, **settings: Any
    ) -> None:
        self.clock = LoopClock()
        self.cluster = MemoryCluster(self.clock)
        self.own = OwnClock()
        """The operator's; tests set its `skew`."""
        self.hosts = Hosts(self.own)
        self.hub: EmptyHub | KeepingHub = EmptyHub(self.own)
        self.sweep: Sweep | None = None
        if cells:
            self.hub = KeepingHub(self.own)
            self.sweep = Sweep(self, self.hub)
            self.sweep.declare(cells)
        self.points = Points()
        self.instance = "inst" if beside is None else "other-inst"
        self.key_alias = "main" if beside is None else "second"
        self._beside = beside
        self.deaths = 0
        self._away_until = START
        self.foreign: list[str] = []
        self._draws = itertools.count()
        self._seed = seed
        self._folder = folder
        self._flags = settings
        self._stack = contextlib.AsyncExitStack()
        self.process: OperatorProcess | None = None

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().set_task_factory(owning_tasks)
        if self._beside is None:
            self.sim = await self._stack.enter_async_context(self.vendor(_Stepped(self.clock)))
        else:
            self.sim = self._beside.sim
            _second_key(self.sim)
        self.hosts.sim = self.sim
        self.books = Books(self)
        key = self._folder / self.key_alias
        key.write_text(self.sim.key(self.key_alias))
        self.settings = Settings(runpod_key_file=key, runpod_api=self.sim.url, **self._flags)
        self.start()
        self._working = asyncio.create_task(self.sweep.run()) if self.sweep is not None else None
        self._keeper = asyncio.create_task(self._keep())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (self._keeper, self._working):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self.process is not None:
            await self.process.bury()
        await self._stack.aclose()

    def vendor(self, clock: VirtualClock) -> RunPodSimulator:
        """The vendor of this scene."""
        return RunPodSimulator(clock=clock)

    def start(self) -> None:
        self.process = OperatorProcess(self)
        self.process.start()

    async def kill(self) -> None:
        """Between two moments of its own; it is started again."""
        assert self.process is not None
        self.process.died.set()

    async def die(self) -> None:
        """For good: nobody starts it again."""
        self._keeper.cancel()
        assert self.process is not None
        self.process.died.set()
        await self.process.bury()

    async def _keep(self) -> None:
        while True:
            assert self.process is not None
            await self.process.died.wait()
            self.deaths += 1
            await self.process.bury()
            await asyncio.sleep(RESTART)
            self.start()

    def strike(self, mishap: Mishap | None, name: str) -> None:
        """The cluster's part of what happens at a point: raises what the port raises."""
        when, _, what = name.partition(" ")
        written = what in WRITES
        if mishap is Mishap.OUTAGE:
            self._away_until = self.clock.now() + OUTAGE
        if mishap in OF_THE_WATCH:
            self.cluster.wire.begin(mishap)
        if mishap is Mishap.CONFLICT and when == "before" and written:
            raise ApiConflict("somebody else was faster")
        if mishap is Mishap.LOST and when == "after" and written:
            raise ApiUnavailable("the answer was lost")
        if what.startswith("cluster.") and when == "before" and self.clock.now() < self._away_until:
            raise ApiUnavailable("connection refused")

    def entropy(self) -> str:
        return hashlib.sha256(f"{self._seed}/{next(self._draws)}".encode()).hexdigest()[:32]

    # What tests look at.

    def status(self, name: str = "one") -> Raw:
        """The GpuPod's status, empty when it is gone."""
        found = self.cluster.find(GPUPODS, name)
        return (found or {}).get("status") or {}

    def pod_id(self, name: str = "one") -> str | None:
        return (self.status(name).get("attempt") or {}).get("podId")

    def is_true(self, kind: str, name: str = "one") -> bool:
        conditions = self.status(name).get("conditions") or []
        return any(c["type"] == kind and c["status"] == "True" for c in conditions)

    def ready(self, name: str = "one") -> bool:
        """Ready with a pod that lives."""
        pod = self.sim.cloud.pods.get(self.pod_id(name) or "")
        return self.is_true("Ready", name) and pod is not None and pod.alive and self.status(name)["phase"] == "Ready"

    def pods(self) -> list[SimPod]:
        """Pods that were ever made for this cluster or by hand; not those of another one."""
        return [p for p in self.sim.cloud.pods.values() if not p.owner or p.owner.startswith(f"{self.instance}/")]

    def alive(self) -> list[SimPod]:
        """Of these, the ones that exist at the vendor."""
        return [p for p in self.pods() if p.alive]

    async def make_by_hand(self, ports: list[str], env: dict[str, str] | None = None) -> str:
        """A pod of this account that no operator made."""
        body = {
            "name": "by-hand",
            "image": gpupod()["container"]["image"],
            "gpu": {"id": GPU, "count": 1},
            "ports": ports,
            "env": env or {},
        }
        async with aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {self.sim.key()}", "User-Agent": "a person"}
            async with session.post(self.sim.url + "/v2/pods", json=body, headers=headers) as answer:
                made = await answer.json()
                assert answer.status == 201, made
        self.foreign.append(made["id"])
        await self.pause(timedelta(minutes=2))
        return str(made["id"])

    async def until(self, told: Callable[[], bool], within: timedelta = timedelta(minutes=30)) -> None:
        """Let time go on until it is as told."""
        end = self.clock.now() + within
        while not told():
            if self.clock.now() >= end:
                raise Unfinished(self.story())
            await asyncio.sleep(1)

    async def pause(self, length: timedelta) -> None:
        await asyncio.sleep(length.total_seconds())

    def story(self) -> str:
        """Who called what, what it cost, and what the objects say now: for people who replay a schedule."""
        cloud = self.sim.cloud
        lines = [
            f"{e.at:%H:%M:%S} {e.method} {e.path} -> {e.status}" + (f" [{e.fault}]" if e.fault else "")
            for e in self.sim.journal.entries
            if e.method != "GET"
        ]
        lines += [
            f"pod {p.id} of {p.owner}: {p.created_at:%H:%M:%S} to {p.deleted_at or 'now'}, {p.status}, "
            f"${cloud.ledger.spent(cloud.now, subject=p.id):.4f}"
            for p in cloud.pods.values()
        ]
        lines += [
            f"{key}: {raw['status'].get('phase')}: {raw['status'].get('message')}" for key, raw in self._objects()
        ]
        lines += [
            f"point {number}: {what} {self.points.names[number : number + 1]}"
            for number, what in self.points.mishaps.items()
        ]
        return "\n".join(lines)

    def _objects(self) -> list[tuple[str, Raw]]:
        return [("/".join(key), raw) for key, raw in self.cluster.objects[GPUPODS].items()]


class Unfinished(AssertionError):
    """What was to happen did not happen in time; the text is the story."""


def _second_key(sim: RunPodSimulator) -> None:
    account = next(a for a in sim.cloud.accounts.values() if any(k.alias == "main" for k in a.keys))
    if all(key.alias != "second" for key in account.keys):
        first = account.keys[0]
        account.keys.append(dataclasses.replace(first, alias="second", secret=first.secret[:-4] + "2222"))


class _Stepped(VirtualClock):
    """The vendor's clock: its model moves when it is asked, so that nothing ticks while nobody looks."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__()
        self._clock = clock

    def __call__(self) -> Any:
        return self._clock.now()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
