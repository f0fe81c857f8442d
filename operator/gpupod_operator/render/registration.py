"""Which object of a namespace holds which name, and so which rows pods.conf has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpupod_operator.api.reasons import Reason
from gpupod_operator.render.rows import PodObject, Row, Verdict, row_of


@dataclass(frozen=True, slots=True)
class Registration:
    """Rows by name, and the verdict on each object by uid.

    `waiting` are the uids of objects that wait for a name, by the uid of its holder: to be woken when that one goes.
    """

    rows: tuple[Row, ...]
    verdicts: Mapping[str, Verdict]
    waiting: Mapping[str, tuple[str, ...]]


def registration(objects: Iterable[PodObject]) -> Registration:
    """Decide over all GpuPods of ONE namespace. The result does not depend on their order."""
    rows: list[Row] = []
    verdicts: dict[str, Verdict] = {}
    waiting: dict[str, tuple[str, ...]] = {}
    holders: dict[str, PodObject] = {}
    # the older one holds the name while it exists, row or not: else a short fault of its pod would hand the name over
    for pod in sorted(objects, key=lambda p: (p.created_at, p.uid)):
        if not pod.spec.pods_conf.publish:
            _, verdicts[pod.uid] = row_of(pod)
            continue
        holder = holders.setdefault(pod.row_name, pod)
        if holder is not pod:
            verdicts[pod.uid] = _conflict(pod, holder)
            waiting[holder.uid] = (*waiting.get(holder.uid, ()), pod.uid)
            continue
        row, verdicts[pod.uid] = row_of(pod)
        if row is not None:
            rows.append(row)
    return Registration(tuple(sorted(rows, key=lambda r: r.name)), verdicts, waiting)


def _conflict(pod: PodObject, holder: PodObject) -> Verdict:
    return Verdict(
        False,
        Reason.NAME_CONFLICT,
        f"the name {pod.row_name} in pods.conf is held by the older GpuPod {holder.name}; set spec.podsConf.name here "
        f"to another name, or delete {holder.name}",
    )
