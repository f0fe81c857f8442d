"""What people wanted, sampled while a test runs, so that each call to the vendor can be held against it afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from gpupod_rehearsal.demo.stage import API, NAMESPACE, Stage

EVERY = 0.5
"""Seconds between two looks."""

Sighting = tuple[datetime, Mapping[str, Mapping[str, Any]]]
"""When, and the spec of every GpuPod then, by uid."""


class Recorder:
    """Run `follow` beside the test."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.sightings: list[Sighting] = []

    async def follow(self) -> None:
        while True:
            try:
                objects = await self._stage.kube.items(API, "GpuPod", NAMESPACE)
            except Exception:  # noqa: BLE001 - a test may take the API server away; then there is nothing to be seen
                self.sightings.append((datetime.now(UTC), {}))
            else:
                seen = {o["metadata"]["uid"]: o.get("spec") or {} for o in objects}
                self.sightings.append((datetime.now(UTC), seen))
            await asyncio.sleep(EVERY)


def against_will(
    ledger: Iterable[Mapping[str, Any]], requests: Iterable[Mapping[str, Any]], sightings: list[Sighting]
) -> list[str]:
    """I5 and I11: no call on a paused object's pod, no create against `allowPaid`.

    A call counts where the looks before and after it agree, so that an edit under way is nobody's fault.
    """
    owners = {row["podId"]: (row["owner"] or "").rpartition("/")[2] for row in ledger}
    found = []
    for request in requests:
        if request["method"] not in ("POST", "PATCH", "DELETE") or not request["path"].startswith("/v2/pods"):
            continue
        specs = _around(sightings, datetime.fromisoformat(request["at"]), owners.get(request["pod"] or "", ""))
        what = f"{request['method']} {request['path']} for pod {request['pod']}"
        if specs and all(spec.get("paused") for spec in specs):
            found.append(f"I5: {what} while its object was paused")
        # a stop is a POST, too, and costs nothing
        created = request["method"] == "POST" and request["path"].rstrip("/").endswith("/pods")
        if created and request["status"] == 201 and specs and all(_unpaid(spec) for spec in specs):
            found.append(f"I11: {what} against allowPaid")
    return found


def _around(sightings: list[Sighting], at: datetime, uid: str) -> list[Mapping[str, Any]]:
    """The object's spec in the last look before and the first look after; empty where one of them did not see it."""
    before = [seen for when, seen in sightings if when <= at][-1:]
    after = [seen for when, seen in sightings if when > at][:1]
    specs = [seen[uid] for seen in (*before, *after) if uid in seen]
    return specs if len(specs) == 2 else []


def _unpaid(spec: Mapping[str, Any]) -> bool:
    return (spec.get("spend") or {}).get("allowPaid") is False
