"""What people wanted and what the cluster showed, sampled while a test runs, to be judged afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gpupod_rehearsal.demo.stage import API, NAMESPACE, Stage
from worldkit.processes import processes_show

EVERY = 0.5
"""Seconds between two looks."""
PROCESSES_EVERY = 4
"""Looks between two looks at the processes of this machine."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """`objects` are the GpuPods by uid, `rows` the names in pods.conf; both None where the API server was away."""

    at: datetime
    objects: Mapping[str, Mapping[str, Any]] | None = None
    rows: frozenset[str] | None = None


@dataclass
class Recorder:
    """Run `follow` beside the test."""

    stage: Stage
    sightings: list[Sighting] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    """Processes that were seen with a secret in their arguments or environment."""
    persons: tuple[str, ...] = ()
    """Programs of persons, who may show themselves what they like."""

    async def follow(self) -> None:
        while True:
            self.sightings.append(await self._look())
            if len(self.sightings) % PROCESSES_EVERY == 1:
                secrets = (self.stage.hub_token, self.stage.runpod_key)
                self.shown.update(await asyncio.to_thread(processes_show, secrets, self.persons))
            await asyncio.sleep(EVERY)

    async def _look(self) -> Sighting:
        kube = self.stage.kube
        try:
            objects = await kube.items(API, "GpuPod", NAMESPACE)
            maps = await kube.items("v1", "ConfigMap", NAMESPACE)
        except Exception:  # noqa: BLE001 - a test may take the API server away; then there is nothing to be seen
            return Sighting(datetime.now(UTC))
        rows = [
            line.split()[0]
            for found in maps
            for line in ((found.get("data") or {}).get("pods.conf") or "").splitlines()
            if line.strip() and not line.startswith("#")
        ]
        return Sighting(datetime.now(UTC), {o["metadata"]["uid"]: o for o in objects}, frozenset(rows))


def against_will(
    ledger: Iterable[Mapping[str, Any]], requests: Iterable[Mapping[str, Any]], sightings: list[Sighting]
) -> Iterator[str]:
    """I5 and I11: no call on a paused object's pod, no create against `allowPaid`.

    A call counts where the looks before and after it agree, so that an edit under way is nobody's fault.
    """
    owners = {row["podId"]: (row["owner"] or "").rpartition("/")[2] for row in ledger}
    for request in requests:
        if request["method"] not in ("POST", "PATCH", "DELETE") or not request["path"].startswith("/v2/pods"):
            continue
        specs = _around(sightings, datetime.fromisoformat(request["at"]), owners.get(request["pod"] or "", ""))
        what = f"{request['method']} {request['path']} for pod {request['pod']}"
        if specs and all(spec.get("paused") for spec in specs):
            yield f"I5: {what} while its object was paused"
        # a stop is a POST, too, and costs nothing
        created = request["method"] == "POST" and request["path"].rstrip("/").endswith("/pods")
        if created and request["status"] == 201 and specs and all(_unpaid(spec) for spec in specs):
            yield f"I11: {what} against allowPaid"


def _around(sightings: list[Sighting], at: datetime, uid: str) -> list[Mapping[str, Any]]:
    """The object's spec in the last look before and the first look after; empty where one of them did not see it."""
    before = [s.objects or {} for s in sightings if s.at <= at][-1:]
    after = [s.objects or {} for s in sightings if s.at > at][:1]
    specs = [seen[uid].get("spec") or {} for seen in (*before, *after) if uid in seen]
    return specs if len(specs) == 2 else []


def _unpaid(spec: Mapping[str, Any]) -> bool:
    return (spec.get("spend") or {}).get("allowPaid") is False
