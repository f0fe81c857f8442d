"""The insides of the pods: SSH sessions without SSH, on what the simulated vendor says is mapped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from chaoskit.clock import LoopClock
from gatekit.cells import agent_cell
from gpupod_operator.api.times import parse_time
from gpupod_operator.core.plan import DrainWorkload, InstallAgent, LaunchWorkload
from gpupod_operator.core.shell import ShellReading, ShellTarget, SshClass
from gpupod_operator.ports import LaunchRefused, ShellError
from gpupod_rehearsal.runpod.pod import Status
from gpupod_rehearsal.runpod.simulator import RunPodSimulator
from podkit.hosts import TREE, Host


class Hosts:
    """Implements the operator's shell port. A pod that is wedged, stopped or gone does not answer."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self.sim: RunPodSimulator | None = None
        self._hosts: dict[tuple[str, str], Host] = {}
        self._orders: dict[int, tuple[str, ...]] = {}
        self._deadlines: dict[int, datetime | None] = {}
        self.launched: list[tuple[str, str]] = []
        """(pod id, launch id) of every process that was ever started."""

    def of(self, pod_id: str) -> Host:
        """The inside of the pod in its present start: a stop takes processes and container disk."""
        assert self.sim is not None
        pod = self.sim.cloud.pods[pod_id]
        return self._hosts.setdefault((pod_id, str(pod.started_at)), Host())

    def orders_of(self, pod_id: str) -> tuple[str, ...]:
        """Uids of the cells that the agent was told about."""
        return self._orders.get(id(self.of(pod_id)), ())

    async def read(self, target: ShellTarget, key: str, *, level: str = "Auth") -> ShellReading:
        if not await self._answers(target):
            return ShellReading(SshClass.TIMEOUT, "timed out", self._clock.now(), tcp_open=False)
        return self.of(target.pod_id).read(target, self._clock.now())

    async def install_agent(self, target: ShellTarget, key: str, *, settings: Mapping[str, Any]) -> str:
        host = await self._reached(target)
        cells = {uid: agent_cell(uid, "Pending") for uid in self._orders.get(id(host), ())}
        deadline = self._deadlines.get(id(host))
        host.install(InstallAgent(target, str(settings["attempt"]), b"", "", None, deadline), cells)
        return TREE

    async def write_cells(self, target: ShellTarget, key: str, cells: bytes) -> None:
        told, host = json.loads(cells), await self._reached(target)
        self._orders[id(host)] = tuple(c["uid"] for c in told["cells"])
        timer = told.get("timer")
        self._deadlines[id(host)] = parse_time(timer["deadline"]) if timer is not None else None

    async def launch(
        self,
        target: ShellTarget,
        key: str,
        *,
        attempt: str,
        launch_id: str,
        pod_started_at: str,
        command: Sequence[str],
        check: Sequence[str],
        log_file: str | None,
    ) -> None:
        host = await self._reached(target)
        before = len(host.launches)
        order = LaunchWorkload(target, attempt, launch_id, pod_started_at, tuple(command), tuple(check), log_file)
        if host.launch(order).ok is False:
            raise LaunchRefused(host.refuses or "")
        if len(host.launches) > before:
            self.launched.append((target.pod_id, launch_id))

    async def drain(self, target: ShellTarget, key: str, *, attempt: str, grace_seconds: int = 60) -> None:
        (await self._reached(target)).drain(DrainWorkload(target, attempt, ""))

    async def capture_logs(self, target: ShellTarget, key: str, *, attempt: str, limit_bytes: int = 262144) -> str:
        await self._reached(target)
        return "a log"

    async def _reached(self, target: ShellTarget) -> Host:
        if not await self._answers(target):
            raise ShellError("timed out")
        return self.of(target.pod_id)

    async def _answers(self, target: ShellTarget) -> bool:
        assert self.sim is not None
        await self.sim.catch_up()
        pod = self.sim.cloud.pods.get(target.pod_id)
        return pod is not None and pod.alive and pod.reachable and pod.status is Status.RUNNING
