"""A scene with many objects at once, whose vendor has machines for all of them and refuses calls beyond its quota."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from chaoskit.scene import GPU, Scene, gpupod
from gpupod_operator.api.names import GPUPODS
from gpupod_rehearsal.runpod.clock import VirtualClock
from gpupod_rehearsal.runpod.cloud import Blueprint
from gpupod_rehearsal.runpod.http.journal import Entry
from gpupod_rehearsal.runpod.simulator import RunPodSimulator
from gpupod_rehearsal.runpod.world import Account, ApiKey, Host

QUOTA = {"minute": 60, "hour": 3_000, "day": 50_000}
"""The example in the vendor's documentation; the quotas of a live account were larger."""
RESERVED = 12
"""A fifth of the minute is left to stops and deletes."""
PER_HOST = 8


@dataclass(frozen=True)
class Calls:
    """Requests of one minute, refused ones included."""

    total: int
    refused: int
    by_kind: Counter[str]


class Fleet(Scene):
    """`count` objects are applied by `apply_all`; nobody visits them over SSH."""

    def __init__(self, folder: Path, count: int, quota: dict[str, int] = QUOTA, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self.names = [f"one-{number}" for number in range(count)]
        self._quota = quota

    def vendor(self, clock: VirtualClock) -> RunPodSimulator:
        machines = len(self.names) // PER_HOST + 8
        hosts = [Host(f"host-{n}", "US-KS-2", GPU, gpus=PER_HOST) for n in range(machines)]
        rich = Account(
            "acct_main",
            "team@example.com",
            deposited=Decimal(10**8),
            spend_limit=Decimal(10**6),
            keys=[ApiKey("main", "rpa_simulated_main")],
        )
        return RunPodSimulator(clock=clock, blueprint=Blueprint(accounts=[rich], hosts=hosts), quotas=self._quota)

    def apply_all(self) -> None:
        for name in self.names:
            self.cluster.apply(GPUPODS, name, gpupod(health={"readiness": "Mapping"}))

    def all_ready(self) -> bool:
        return all(self.is_true("Ready", name) for name in self.names)

    async def restart(self) -> datetime:
        """Kill the operator, and return when it was once the next process has seen everything."""
        dead, moment = self.process, self.clock.now()
        await self.kill()
        await self.until(lambda: self.process is not dead and self._all_seen())
        return moment

    def _all_seen(self) -> bool:
        """By the process that runs now: each object had a pass on a complete list of its own."""
        assert self.process is not None
        slots = list(self.process.world.slots)
        return len(slots) == len(self.names) and all(slot.sequence >= 1 for slot in slots)

    def windows_since(self, moment: datetime) -> list[Calls]:
        """The minutes as the vendor counts them, by its journal: one begins with the first call after the last one."""
        found: list[list[Entry]] = []
        for entry in self.sim.journal.entries:
            if not found or entry.at - found[-1][0].at >= timedelta(minutes=1):
                found.append([])
            found[-1].append(entry)
        return [_counted(window) for window in found if window[-1].at >= moment]

    def pods_made(self) -> Counter[str]:
        """By owner: how many pods there ever were."""
        return Counter(str(pod.owner) for pod in self.sim.cloud.pods.values())


def _counted(window: list[Entry]) -> Calls:
    kinds = Counter(f"{entry.method} {_route(entry.path)}" for entry in window)
    return Calls(len(window), sum(entry.status == 429 for entry in window), kinds)


def _route(path: str) -> str:
    """Without the ids of pods."""
    parts = path.strip("/").split("/")[1:]
    return "/".join("{id}" if number == 1 and parts[0] == "pods" else part for number, part in enumerate(parts))
