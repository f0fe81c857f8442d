"""Where a cell was last read, compared with where its pod is now, and what a stop or an end took with it."""

from __future__ import annotations

from enum import StrEnum

from gpupod_operator.api.phases import SweepCellPhase
from gpupod_operator.api.sweepcell import Observation, SweepCellSpec, SweepCellStatus
from gpupod_operator.core.mounts import on_mount
from gpupod_operator.core.sweepcell.scope import PodView

LOST_STATE = "Lost"
"""`observation.state` of a cell that was finished, is not on the Hub, and whose disk is gone."""


class Place(StrEnum):
    """HERE: on the present start of the present pod. STOPPED: on this pod, before a stop. PAST: on a pod that is gone.

    UNSURE: on a pod that is neither recorded any more nor proven gone; nothing is concluded from that.
    """

    NEVER = "Never"
    HERE = "Here"
    STOPPED = "Stopped"
    PAST = "Past"
    UNSURE = "Unsure"


def place_of(seen: Observation | None, pod: PodView) -> Place:
    """Where the reading is from, seen from the pod's present."""
    if seen is None or seen.pod_id is None:
        return Place.NEVER
    if not pod.exists or seen.pod_id in pod.gone_ids or seen.pod_id in pod.released_ids:
        return Place.PAST
    if pod.pod_id is None:
        return Place.UNSURE
    if seen.pod_id != pod.pod_id:
        # One attempt is one pod id: the next one begins only when the pod before is proven gone or released.
        return Place.PAST
    if not pod.running:
        return Place.STOPPED
    restarted = pod.started_at is not None and seen.pod_started_at not in (None, pod.started_at)
    return Place.STOPPED if restarted else Place.HERE


def outlives(spec: SweepCellSpec, place: Place, pod: PodView) -> bool:
    """Whether every path of the cell is still there after what `place` says has happened."""
    if place is Place.PAST:
        mounts: tuple[str, ...] = (pod.network_volume_path,) if pod.network_volume_path is not None else ()
    else:
        mounts = pod.volume_paths
    paths = (spec.source.done_file, *(artifact.path for artifact in spec.source.artifacts))
    return all(any(on_mount(path, mount) for mount in mounts) for path in paths)


def unsettled(spec: SweepCellSpec, status: SweepCellStatus, pod: PodView) -> bool:
    """The disk of the last reading is gone, and nobody has said yet what that means for the cell."""
    seen = status.observation
    place = place_of(seen, pod)
    if seen is None or place not in (Place.PAST, Place.STOPPED) or status.phase is SweepCellPhase.VERIFIED:
        return False
    if seen.done_seen:
        return not outlives(spec, place, pod)
    if place is Place.PAST:
        return seen.state != LOST_STATE
    return seen.state not in (LOST_STATE, "Pending") and not outlives(spec, place, pod)
