"""Cells with data: a workload that finishes one after another, an agent that uploads them, a Hub that keeps them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from chaoskit.clock import LoopClock
from gatekit.cells import agent_cell, commit, listing, manifest_bytes
from gpupod_operator.api.names import SWEEPCELLS
from gpupod_operator.core.artifacts import HubCommit, HubDestination, HubListing
from gpupod_operator.ports import HubUnavailable
from gpupod_rehearsal.runpod.pod import SimPod, Status

if TYPE_CHECKING:
    from chaoskit.scene import Scene

STEP = 5.0
"""Seconds between two looks at what the pods have done."""
WORK = timedelta(seconds=40)
"""From the begin of a cell to its done file."""
UPLOAD = timedelta(seconds=25)
"""From the done file to the commit."""
VISIT = timedelta(seconds=30)
"""How often the operator looks into a healthy pod."""
AT_ONCE = timedelta(seconds=15)
"""A cell that is finished this shortly before the pod was lost from sight may not have been read."""


@dataclass(frozen=True)
class Kept:
    """A cell on the Hub."""

    uid: str
    manifest: bytes
    oid: str
    at: datetime


class KeepingHub:
    """The Hub's port over what the agents committed. While `down` it answers nothing."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self.kept: dict[str, Kept] = {}
        """By path of the destination."""
        self.down = False

    async def list_prefix(self, destination: HubDestination, token: str | None) -> HubListing:
        self._answer()
        kept = self.kept.get(destination.path.strip("/"))
        if kept is None:
            return HubListing(head="0" * 40, at=self._clock.now(), files={}, manifest=None)
        return listing(kept.uid, manifest=kept.manifest, at=self._clock.now(), head=kept.oid)

    async def commits(
        self, destination: HubDestination, token: str | None, limit: int = 50, wanted: frozenset[str] = frozenset()
    ) -> tuple[HubCommit, ...]:
        self._answer()
        return tuple(commit(k.uid, k.manifest, oid=k.oid, at=k.at) for k in self.kept.values())

    async def check_write(self, destination: HubDestination, token: str | None) -> None:
        self._answer()

    def _answer(self) -> None:
        if self.down:
            raise HubUnavailable("503")


class Sweep:
    """Plays workload and agent of every pod of a scene, and judges each end of a pod by what was on its disk."""

    def __init__(self, scene: Scene, hub: KeepingHub) -> None:
        self._scene = scene
        self._hub = hub
        self.finished: dict[str, dict[str, datetime]] = {}
        """By pod id: when each cell's done file was written on its disk."""
        self._begun: dict[str, datetime] = {}
        self._reachable_at: dict[str, datetime] = {}
        self._ended: set[str] = set()
        self.broken: list[str] = []

    def declare(self, count: int) -> None:
        """SweepCells of GpuPod `one`."""
        self._scene.cluster.secrets[("ml", "hf")] = {"token": b"hf_x"}
        for n in range(count):
            self._scene.cluster.apply(SWEEPCELLS, f"c{n}", _spec(n))

    async def run(self) -> None:
        while True:
            await self._scene.sim.catch_up()
            for pod in self._scene.pods():
                self._look(pod)
            await asyncio.sleep(STEP)

    def saved(self) -> set[str]:
        """Uids on the Hub."""
        return {kept.uid for kept in self._hub.kept.values()}

    def _look(self, pod: SimPod) -> None:
        now = self._scene.clock.now()
        if not pod.alive or pod.status is Status.EXITED:
            self._judge(pod, now)
            return
        if pod.status is not Status.RUNNING:
            return
        if pod.reachable:
            self._reachable_at[pod.id] = now
        host = self._scene.hosts.of(pod.id)
        done = self.finished.setdefault(pod.id, {})
        cells = self._cells()
        if any(launch.alive for launch in host.launches):
            left = [uid for uid in cells if uid not in done and uid not in self.saved()]
            began = self._begun.setdefault(pod.id, now)
            if left and now - began >= WORK:
                done[left[0]] = now
                self._begun[pod.id] = now
        else:
            self._begun.pop(pod.id, None)
        if not host.agent_running:
            return
        for uid, at in done.items():
            if uid not in self.saved() and now - at >= UPLOAD and not self._hub.down:
                self._commit(uid, cells[uid], pod, now)
            if uid in self._orders(pod):
                host.cells[uid] = self._told(uid, at)

    def _commit(self, uid: str, path: str, pod: SimPod, now: datetime) -> None:
        manifest = manifest_bytes(uid, podId=pod.id)
        oid = hashlib.sha1(f"{uid}{now}".encode()).hexdigest()
        self._hub.kept[path] = Kept(uid, manifest, oid, now)

    def _told(self, uid: str, at: datetime) -> Any:
        kept = next((k for k in self._hub.kept.values() if k.uid == uid), None)
        if kept is None:
            return agent_cell(uid, "Produced")
        digest = hashlib.sha256(kept.manifest).hexdigest()
        return agent_cell(uid, "Uploaded", manifest_digest=digest, commit_oid=kept.oid, commit_at=kept.at)

    def _cells(self) -> dict[str, str]:
        objects = self._scene.cluster.objects[SWEEPCELLS].values()
        return {raw["metadata"]["uid"]: raw["spec"]["destination"]["path"] for raw in objects}

    def _orders(self, pod: SimPod) -> tuple[str, ...]:
        return self._scene.hosts.orders_of(pod.id)

    def _judge(self, pod: SimPod, now: datetime) -> None:
        """I4: what the operator could have known to be finished and unverified is not destroyed without an override."""
        if pod.id in self._ended:
            return
        self._ended.add(pod.id)
        seen = self._reachable_at.get(pod.id)
        for uid, at in self.finished.get(pod.id, {}).items():
            known = seen is not None and at + AT_ONCE + VISIT <= seen
            if uid not in self.saved() and (known or (pod.reachable and at + AT_ONCE <= now)):
                self.broken.append(f"I4 at {now:%H:%M:%S}: {uid} was finished on pod {pod.id} and is nowhere else")
        # a stop takes the container disk: what was finished there is no more
        self.finished.pop(pod.id, None)

    def unfinished(self) -> Iterator[str]:
        """I10, once the operation is done: a declared cell that is not on the Hub."""
        saved = self.saved()
        for uid in self._cells():
            if uid not in saved:
                yield f"I10: {uid} is not on the Hub"


def _spec(n: int) -> dict[str, Any]:
    root = f"/workspace/out/c{n}"
    return {
        "podRef": {"name": "one"},
        "sweep": "s",
        "source": {
            "doneFile": f"{root}/DONE",
            "artifacts": [
                {"name": "eval", "path": f"{root}/eval", "files": ["metrics.json"]},
                {"name": "weights", "path": f"{root}/weights", "include": ["*.bin"], "minFiles": 1},
            ],
        },
        "destination": {"repo": "org/results", "path": f"sweep/c{n}", "tokenSecretRef": {"name": "hf", "key": "token"}},
    }
