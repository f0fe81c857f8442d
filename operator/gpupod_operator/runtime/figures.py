"""What a scrape tells of each GpuPod, read from its committed status once per version and not once per scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpupod_operator.api.conditions import ConditionType, find_condition
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.phases import Phase
from gpupod_operator.api.reasons import Reason
from gpupod_operator.runtime.buckets import Held, held
from gpupod_operator.runtime.store import Key, key_of

UNREADABLE = "Unreadable"
"""Stands in for the phase of an object that this version cannot read: it must not take the other series with it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """`cost` in USD per hour, 0 when it is not known. `unreachable_since`: the present episode's first sight."""

    phase: str
    cost: float = 0.0
    unreachable_since: datetime | None = None
    blocked_pod: str | None = None
    """The pod that the deleted object still has."""
    held: Held | None = None
    unlaunched: bool = False
    """Ready for `spend.unlaunchedAfter` and longer, and nothing was launched."""


class Figures:
    """A few numbers per object, kept from one scrape to the next."""

    def __init__(self) -> None:
        self._held: dict[Key, tuple[tuple[str, str], Figure]] = {}

    def of(self, raws: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Key, Figure]]:
        """Of exactly these objects; of others nothing is kept."""
        before, self._held = self._held, {}
        for raw in raws:
            key, metadata = key_of(raw), raw["metadata"]
            version = (metadata["uid"], metadata["resourceVersion"])
            held = before.get(key)
            self._held[key] = held if held is not None and held[0] == version else (version, figure(raw))
        return ((key, found) for key, (_, found) in self._held.items())


def figure(raw: Mapping[str, Any]) -> Figure:
    """Parse one object."""
    try:
        status = GpuPodStatus.model_validate(raw.get("status") or {})
    except ValueError:
        return Figure(UNREADABLE)
    cost = status.pod.cost_per_hour if status.pod is not None else None
    pod_id = status.attempt.pod_id if status.attempt is not None else None
    metadata = raw["metadata"]
    working = find_condition(status.conditions, ConditionType.WORKLOAD_RUNNING)
    return Figure(
        phase=str(status.phase or Phase.PENDING),
        cost=float(cost or 0),
        unreachable_since=status.episode.first_seen if status.episode is not None else None,
        blocked_pod=pod_id if metadata.get("deletionTimestamp") else None,
        held=held(metadata["namespace"], metadata["name"], metadata["uid"], status),
        unlaunched=working is not None and working.reason == Reason.UNLAUNCHED,
    )
