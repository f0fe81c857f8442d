"""Plays an operation with its operator killed at every place of it, one after the other, until none is left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from chaoskit.judge import judged
from chaoskit.operations import OPERATIONS, Operation
from chaoskit.scene import Unfinished
from chaoskit.schedule import QUIET
from gpupod_operator.api.names import GPUPODS
from mortalkit.scene import NAMESPACE, RealScene
from worldkit.invariants import broken

EVERY: tuple[str, ...] = ("",)
"""Every place."""
TELLING = ("runpod write", "_pod", "apply_status", "set_finalizer")
"""Around each order to the vendor, each read of one pod, and each write of what is known."""
NOT_HERE = {"finalizer-stripped": "it edits the memory of a cluster"}
CHANGED: dict[str, dict[str, Any]] = {
    # after an undo the next try comes in a second here, and the price is too high for half a minute
    "undo-over-cap": {"pods": 99},
}
PLAYED = sorted(OPERATIONS.keys() - NOT_HERE.keys())


@dataclass(frozen=True)
class Covered:
    """`places` at which the operator was killed, in order; `broken` are sentences."""

    operation: str
    places: tuple[str, ...]
    broken: tuple[str, ...]
    story: str

    def __str__(self) -> str:
        return "\n".join([self.operation, *self.broken, *self.places, self.story])


async def covered(scene: RealScene, name: str | Operation, names: tuple[str, ...]) -> Covered:
    """The scene is fresh. `names` are ends of the names of the points that count."""
    operation = name if isinstance(name, Operation) else replace(OPERATIONS[name], **CHANGED.get(name, {}))
    found: list[str] = []
    try:
        await operation.prepare(scene)
        scene.arm(names)
        await operation.act(scene)
        quiet = False
        while not quiet:
            await scene.until(lambda: operation.done(scene))
            deaths = scene.deaths
            await scene.pause(QUIET)
            quiet = deaths == scene.deaths and operation.done(scene)
    except Unfinished:
        found.append("it never ended as it should")
    found += judged(scene, operation, faulty=False)
    found += await _invariants(scene, released=operation.released)
    found += [f"an operator ended with code {code}" for code in scene.exits]
    killed = scene.folder / "killed"
    places = tuple(killed.read_text().splitlines()) if killed.exists() else ()
    if len(places) != scene.deaths:
        found.append(f"{scene.deaths} deaths at {len(places)} places")
    return Covered(operation.name, places, tuple(found), scene.story())


async def _invariants(scene: RealScene, *, released: bool) -> Iterable[str]:
    ledger = (await scene.told("/_sim/ledger"))["pods"]
    requests = (await scene.told("/_sim/requests"))["requests"]
    objects = list(scene.cluster.objects[GPUPODS].values())
    shown = [
        *await scene.admin.list("ConfigMap", namespace=NAMESPACE),
        *await scene.admin.list("Event", namespace=NAMESPACE),
    ]
    logs = await asyncio.to_thread(scene.log.read_text, encoding="utf-8", errors="replace")
    ours = [row for row in ledger if row["podId"] not in scene.foreign and not (released and not row["deleted"])]
    return broken(ours, requests, objects, logs, (scene.sim.key(), scene.sim.key("other")), shown)
