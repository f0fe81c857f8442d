"""I9: while nothing changes, nothing is written, to the vendor or to the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpupod_rehearsal.demo.stage import API, NAMESPACE, Stage

LOOKS = 3
"""Writes in this many windows one after the other are no transition that was late: they go on for ever."""
WINDOW = 1.2
"""Seconds: more than two ticks of the observer as tests set it."""


@dataclass(frozen=True, slots=True)
class Still:
    """`versions` of all that the operator writes, by kind and name; `asked` counts changes asked of the vendor."""

    settled: bool
    wishes: Mapping[str, Any]
    world: Any
    versions: Mapping[str, str]
    asked: int


async def restless(stage: Stage) -> list[str]:
    """What was written again and again though nothing changed; empty also for a world that is on its way."""
    found: list[str] = []
    before = await _look(stage)
    for _ in range(LOOKS):
        await asyncio.sleep(WINDOW)
        after = await _look(stage)
        found = list(written(before, after))
        if not found:
            return []
        before = after
    return found


def written(before: Still, after: Still) -> Iterator[str]:
    """What was written between two looks at a world that is settled and stayed the same."""
    if not (before.settled and after.settled and before.wishes == after.wishes and before.world == after.world):
        return
    if after.asked != before.asked:
        yield f"I9: {after.asked - before.asked} changes were asked of the vendor at rest"
    for name, version in after.versions.items():
        if before.versions.get(name) != version:
            yield f"I9: {name} was written at rest"


def settled(raw: Mapping[str, Any]) -> bool:
    """Nothing is under way for this object, and all of its last edit was seen."""
    status = raw.get("status") or {}
    states = {c["type"]: c["status"] for c in status.get("conditions") or []}
    seen = status.get("observedGeneration") == raw["metadata"].get("generation")
    at_an_end = states.get("Ready") == "True" or states.get("Stalled") == "True" or status.get("phase") == "Stopped"
    going = raw["metadata"].get("deletionTimestamp") or states.get("Reconciling") == "True"
    return seen and at_an_end and not going


async def _look(stage: Stage) -> Still:
    kube = stage.kube
    pods = await kube.items(API, "GpuPod", NAMESPACE)
    cells = await kube.items(API, "SweepCell", NAMESPACE)
    maps = await kube.items("v1", "ConfigMap", NAMESPACE)
    requests = (await stage.sim("GET", "/_sim/requests"))["requests"]
    landed = all((c.get("status") or {}).get("phase") == "Verified" for c in cells)
    return Still(
        settled=all(settled(p) for p in pods) and landed,
        wishes={o["metadata"]["uid"]: (o["metadata"]["generation"], o["metadata"].get("annotations")) for o in pods},
        world={p["podId"]: (p["alive"], p["status"]) for p in (await stage.sim("GET", "/_sim/pods"))["pods"]},
        versions={
            f"{kind} {o['metadata']['name']}": o["metadata"]["resourceVersion"]
            for kind, items in (("GpuPod", pods), ("SweepCell", cells), ("ConfigMap", maps))
            for o in items
        },
        asked=sum(r["method"] in ("POST", "PATCH", "DELETE") for r in requests),
    )
