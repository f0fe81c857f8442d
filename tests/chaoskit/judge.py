"""The promises, judged from the vendor's own books after a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import combinations
from typing import TYPE_CHECKING

from gpupod_operator.api.names import GPUPODS

if TYPE_CHECKING:
    from chaoskit.operations import Operation
    from chaoskit.scene import Scene

GHOST = timedelta(minutes=3)
"""How long a ghost may live beside the pod: a minute until lists show it (or it is waited for), two complete lists."""


def judged(scene: Scene, operation: Operation, *, faulty: bool) -> list[str]:
    """Every broken promise in a sentence. `faulty`: the vendor played faults, so that creates may be ambiguous."""
    return [
        *_two_at_once(scene, faulty=faulty),
        *_too_many(scene, operation, faulty=faulty),
        *_outlived(scene, operation),
        *_foreign(scene),
        *_launched_twice(scene),
        *scene.books.broken,
    ]


def _two_at_once(scene: Scene, *, faulty: bool) -> Iterator[str]:
    """I1: at most one billed pod per GpuPod, a ghost excepted."""
    now = scene.clock.now()
    by_owner: dict[str, list[tuple[object, object, str]]] = {}
    for pod in scene.pods():
        if pod.owner:
            by_owner.setdefault(pod.owner, []).append((pod.created_at, pod.deleted_at or now, pod.id))
    for owner, spans in by_owner.items():
        for (begin, end, one), (begin2, end2, two) in combinations(spans, 2):
            both = min(end, end2) - max(begin, begin2)  # type: ignore[operator, type-var]
            if both > (GHOST if faulty else timedelta(0)):
                yield f"I1: {one} and {two} of {owner} were billed at the same time for {both}"


def _too_many(scene: Scene, operation: Operation, *, faulty: bool) -> Iterator[str]:
    """A crash alone never makes a pod more than the operation needs."""
    made = sum(1 for p in scene.pods() if p.owner)
    if not faulty and made > operation.pods:
        yield f"{made} pods were made where {operation.pods} were needed"


def _outlived(scene: Scene, operation: Operation) -> Iterator[str]:
    """I2: no pod with our stamp outlives its object, released ones excepted."""
    uids = {raw["metadata"]["uid"] for raw in scene.cluster.objects[GPUPODS].values()}
    for pod in scene.alive():
        if pod.owner and pod.owner.rpartition("/")[2] not in uids and not operation.released:
            yield f"I2: {pod.id} of {pod.owner} is still there without its object"


def _foreign(scene: Scene) -> Iterator[str]:
    """I3: no foreign pod is ever written to, an adopted one excepted."""
    named = {(raw["spec"].get("adopt") or {}).get("podId") for raw in scene.cluster.objects[GPUPODS].values()}
    mine = {p.id for p in scene.pods() if p.owner}
    strangers = set(scene.sim.cloud.pods) - mine - named
    for entry in scene.sim.journal.mutations():
        if entry.pod in strangers and entry.key == scene.key_alias and entry.path != "/v2/pods":
            yield f"I3: {entry.method} {entry.path} on a foreign pod"


def _launched_twice(scene: Scene) -> Iterator[str]:
    """A workload is started once per start of a pod."""
    for launch in {x for x in scene.hosts.launched if scene.hosts.launched.count(x) > 1}:
        yield f"the workload {launch} was started twice"
