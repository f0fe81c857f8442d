"""The scene of schedules in the real world: an API server, the vendor on the real clock, an operator by `fork`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import aiohttp

from chaoskit.points import Points
from chaoskit.scene import Scene, Unfinished
from clusterkit.admin import Admin
from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.hosts.protocol import PodHost
from gpupod_rehearsal.runpod.cloud import Blueprint
from gpupod_rehearsal.runpod.simulator import RunPodSimulator
from gpupod_rehearsal.runpod.world import Timings
from mortalkit.forks import Forks
from mortalkit.objects import RealObjects

SYSTEM, NAMESPACE = "gpupod-system", "ml"
SETTLE = 0.8
"""Seconds that an ambiguous create is looked for, instead of 60."""
LOOK = 0.1


class _RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class _NoBooks:
    """Money is compared on virtual time."""

    broken: tuple[str, ...] = ()


class _NoVisits:
    launched: tuple[tuple[str, str], ...] = ()


class RealScene(Scene):
    """`async with RealScene(...)`: what operations ask of a scene, played for real. `hosts` None: pods have no inside.

    CRDs and RBAC are in the cluster. `hub`: the address of the simulated Hub, for operations with cells.
    """

    def __init__(
        self,
        plane: ControlPlane,
        admin: Admin,
        forks: Forks,
        folder: Path,
        hosts: PodHost | None = None,
        hub: str = "http://127.0.0.1:1",
    ) -> None:
        self.clock: Any = _RealClock()
        self.own: Any = self.clock
        self.books: Any = _NoBooks()
        self.hosts: Any = _NoVisits()
        self.cluster: Any = RealObjects(admin, inside=hosts is not None)
        self.points = Points()
        self.instance = "real"
        self.process = None
        self.foreign: list[str] = []
        self.deaths = 0
        self.patience = 60.0
        """Seconds without a death after which an operation counts as never done."""
        self.exits: list[int] = []
        """Exit codes of operators that were not killed."""
        self.folder = folder
        self.log = folder / "operator.log"
        self._plane, self.admin, self._forks, self._inside = plane, admin, forks, hosts
        self._hub = hub
        self._stack = contextlib.AsyncExitStack()
        self._over = False
        self._died_at = time.monotonic()

    async def __aenter__(self) -> Self:
        await self.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        plan = Blueprint(timings=Timings.fast())
        self.sim = await self._stack.enter_async_context(RunPodSimulator(hosts=self._inside, blueprint=plan))
        key = self.folder / "key"
        key.touch(mode=0o600)
        key.write_text(self.sim.key())
        self._env = await asyncio.to_thread(
            self._plane.access.in_cluster_env,
            self.folder / "login",
            namespace=SYSTEM,
            service_account="gpupod-operator",
        )
        await self._start()
        self._keeper = asyncio.create_task(self._keep())
        return self

    async def __aexit__(self, *_: object) -> None:
        # not cancelled: half a start would leave an operator that nobody knows
        self._over = True
        self._forks.kill()
        await asyncio.gather(self._keeper, return_exceptions=True)
        await self._stack.aclose()

    async def kill(self) -> None:
        """Between two moments of its own."""
        self._forks.kill()

    def arm(self, names: tuple[str, ...]) -> None:
        """From now on the operator dies at each place that ends with one of these, once."""
        # renamed, so that nobody reads half of it
        (self.folder / "arming").write_text("\n".join(names))
        (self.folder / "arming").rename(self.folder / "armed")

    async def until(self, told: Callable[[], bool], within: timedelta = timedelta()) -> None:
        """Let it go on until it is as told; each death gives it new time."""
        await self._look()
        begun = time.monotonic()
        while not told():
            if time.monotonic() - max(begun, self._died_at) > self.patience:
                raise Unfinished(self.story())
            await asyncio.sleep(LOOK)
            await self._look()

    async def pause(self, length: timedelta) -> None:
        """As much of the real time as the operator's own times are shorter here."""
        await self._look()
        await asyncio.sleep(length.total_seconds() * SETTLE / 60)
        await self._look()

    async def _look(self) -> None:
        if self._keeper.done():
            self._keeper.result()
        await self.cluster.refresh()

    async def _keep(self) -> None:
        while True:
            code = await self._forks.ended()
            if self._over:
                return
            if code == -9:
                self.deaths += 1
            else:
                self.exits.append(code)
            self._died_at = time.monotonic()
            # as if the Lease of the dead had run out: that takes 15 s, in which nothing happens
            await self.admin.delete("Lease", "gpupod-operator", namespace=SYSTEM)
            await self._start()
            if self._over:
                self._forks.kill()

    async def _start(self) -> None:
        arguments = [
            *("run", "--runpod-api", self.sim.url, "--hub-endpoint", self._hub),
            *("--runpod-key-file", str(self.folder / "key"), "--namespace", SYSTEM),
            *("--instance-id", self.instance),
            *("--observe-every", "300ms", "--visit-every", "500ms", "--create-settle", f"{SETTLE}s"),
            *("--health-host", "127.0.0.1", "--health-port", "-1", "--metrics-port", "-1"),
        ]
        await self._forks.start(self.folder, arguments, self._env, self.log)

    async def told(self, path: str) -> Any:
        """What the simulated vendor says of itself (`/_sim/...`)."""
        async with aiohttp.ClientSession() as session, session.get(self.sim.url + path) as answer:
            return await answer.json()
