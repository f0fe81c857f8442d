"""Where a cell was last read, compared with where its pod is now, and what a stop or an end took with it."""

from __future__ import annotations

from enum import StrEnum

from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.phases import SweepCellPhase
from gpupod_operator.api.sweepcell import Observation, SweepCellSpec, SweepCellStatus
from gpupod_operator.core.mounts import on_mount
from gpupod_operator.core.provider import ProviderState
from gpupod_operator.core.sweepcell.scope import PodView

LOST_STATE = "Lost"
"""`observation.state` of a cell that was finished, is not on the Hub, and whose disk is gone."""

_ENDED_STATES = frozenset({ProviderState.EXITED, ProviderState.TERMINATED})


class Place(StrEnum):
    """HERE: on the present start of the present pod. STOPPED: on this pod, before a stop. PAST: on a pod that is gone.

    UNSURE: on a pod that is neither recorded any more nor proven gone; nothing is concluded from that.
    """

    NEVER = "Never"
    HERE = "Here"
    STOPPED = "Stopped"
    PAST = "Past"
    UNSURE = "Unsure"


def pod_view(
    name: str, spec: GpuPodSpec, status: GpuPodStatus, *, abandoned: str | None = None, gone: bool = False
) -> PodView:
    """The committed status of a GpuPod as its cells see it. `gone`: the recorded pod id is proven gone.

    Attempts in `history` are over, and an attempt ends only with the proof that its pod is gone, or by a release.
    """
    attempt, pod, probe = status.attempt, status.pod, status.probe
    released = frozenset(status.released or ())
    past = frozenset(entry.pod_id for entry in status.history if entry.pod_id is not None)
    pod_id = attempt.pod_id if attempt is not None else None
    here = pod is not None and pod.id in (None, pod_id)
    volume = spec.volume
    network = volume.network.path if volume is not None and volume.network is not None else None
    persistent = volume.persistent.path if volume is not None and volume.persistent is not None else None
    ended = status.ended
    return PodView(
        exists=True,
        name=name,
        attempt=attempt.id if attempt is not None else None,
        pod_id=pod_id,
        started_at=pod.started_at if pod is not None and here else None,
        running=pod is None or not here or pod.provider_status not in _ENDED_STATES,
        contact_lost_at=probe.since if probe is not None and probe.class_ not in (None, "Ok") else None,
        phase=str(status.phase) if status.phase is not None else None,
        ended=(ended.reason or "ended") if ended is not None else None,
        gone_ids=past | (frozenset({pod_id}) if gone and pod_id is not None else frozenset()),
        released_ids=released,
        never_had_pod=pod_id is None and not past and not released,
        abandoned=abandoned,
        volume_paths=tuple(path for path in (network, persistent) if path is not None),
        network_volume_path=network,
    )


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
