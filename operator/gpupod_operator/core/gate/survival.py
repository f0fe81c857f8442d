"""What the act cannot take: paths on volumes that outlive it, and pods on which nothing was ever produced."""

from __future__ import annotations

from gpupod_operator.api.gpupod_spec import GpuPodSpec, VolumeSpec
from gpupod_operator.api.phases import AttemptIntent
from gpupod_operator.api.sweepcell import SweepCellSpec
from gpupod_operator.core.gate.question import CellFacts, GateAct, GateQuestion
from gpupod_operator.core.mounts import on_mount
from gpupod_operator.core.provider import ProviderPod, ProviderState
from gpupod_operator.core.shell import SshClass


def cell_paths(spec: SweepCellSpec) -> tuple[str, ...]:
    """Every path that the cell lives in: its done file and its artifacts."""
    return (spec.source.done_file, *(artifact.path for artifact in spec.source.artifacts))


def survives(q: GateQuestion, pod: ProviderPod, spec: SweepCellSpec) -> bool:
    """Every path of the cell lies on a volume that outlives the act."""
    mounts = _surviving_mounts(q, pod)
    return all(any(on_mount(path, mount) for mount in mounts) for path in cell_paths(spec))


def wiped_by_stop(q: GateQuestion, pod: ProviderPod, spec: SweepCellSpec) -> bool:
    """The pod is stopped and the cell lay on its container disk, which a stop takes: nothing is left to lose.

    EXITED has to be said twice, by the live read and by the recorded status, before it is believed.
    """
    recorded = q.status.pod.provider_status if q.status.pod is not None else None
    if pod.state is not ProviderState.EXITED or recorded != ProviderState.EXITED:
        return False
    declared = q.spec.volume
    mounts = [m.path for m in (declared.network, declared.persistent) if m is not None] if declared else []
    if not mounts and (pod.network_volume_id or pod.persistent_gb):
        return False  # A volume that nobody declared: where it is mounted is not known.
    return not any(on_mount(path, mount) for path in cell_paths(spec) for mount in mounts)


def nothing_produced(q: GateQuestion, cells: tuple[CellFacts, ...]) -> bool:
    """No process of ours or of the image can have written a result on this pod id (second row of the table)."""
    container = q.spec.container
    if not q.created_by_us or container.entrypoint or container.cmd:
        return False
    persistent = q.spec.volume is not None and q.spec.volume.persistent is not None
    if persistent and q.effective_act is GateAct.DESTROY and not q.first_start:
        return False
    contacted = q.ever_contacted or (q.shell is not None and q.shell.ssh is SshClass.OK)
    if contacted and (_may_be_launched(q) or not q.spec.workload.command):
        # Without a command of ours a person works there by hand, and no launch of ours would ever tell.
        return False
    return not _signs_of_work(q, cells)


def workload_is_ours(q: GateQuestion) -> bool:
    """Whatever writes cells on this pod was launched by us."""
    return launched_by_us(q.spec, q.created_by_us)


def launched_by_us(spec: GpuPodSpec, created_by_us: bool) -> bool:
    """No image command, not adopted, a command of ours."""
    container = spec.container
    return created_by_us and not container.entrypoint and not container.cmd and bool(spec.workload.command)


def kept_by_stop(volume: VolumeSpec | None, pod: ProviderPod) -> tuple[str, ...]:
    """Mount paths that outlive a stop, each confirmed by the live pod: a declaration alone keeps nothing."""
    if volume is None:
        return ()
    mounts: list[str] = []
    if volume.network is not None and pod.network_volume_id == volume.network.volume_id:
        mounts.append(volume.network.path)
    if volume.persistent is not None and pod.persistent_gb:
        mounts.append(volume.persistent.path)
    return tuple(mounts)


def _surviving_mounts(q: GateQuestion, pod: ProviderPod) -> tuple[str, ...]:
    """Mount paths that outlive the act."""
    kept, volume = kept_by_stop(q.spec.volume, pod), q.spec.volume
    if q.effective_act is not GateAct.DESTROY or volume is None or volume.persistent is None:
        return kept
    return tuple(path for path in kept if path != volume.persistent.path)


def _may_be_launched(q: GateQuestion) -> bool:
    """A launch was confirmed, or was ordered and its outcome is not known yet."""
    attempt = q.status.attempt
    recorded = attempt is not None and (attempt.intent is AttemptIntent.LAUNCH or attempt.launched_start is not None)
    return q.launch_confirmed or recorded


def _signs_of_work(q: GateQuestion, cells: tuple[CellFacts, ...]) -> bool:
    """Evidence against "nothing was produced" outweighs every record that says so."""
    attempt = q.status.attempt.id if q.status.attempt is not None else None
    launches = (q.shell.launches or ()) if q.shell is not None else ()
    if any(launch.alive or launch.attempt == attempt for launch in launches):
        return True
    for cell in cells:
        seen = cell.status.observation
        if seen is not None and seen.pod_id == q.pod_id and seen.done_seen:
            return True
        if cell.agent is not None and (cell.agent.done_seen or cell.agent.state == "Producing"):
            return True
    return False
