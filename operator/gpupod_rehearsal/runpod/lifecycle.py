"""How a pod lives: PROVISIONING, STARTING while the image is pulled, RUNNING, then ports; and what the verbs do."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from gpupod_rehearsal.runpod.catalog import Image
from gpupod_rehearsal.runpod.ledger import Meter, running_disk_rate, stopped_disk_rate
from gpupod_rehearsal.runpod.orders import DestroyContainer, SetReachable, StartContainer, StopContainer
from gpupod_rehearsal.runpod.pod import PortMapping, SimPod, Stage, Status

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.cloud import Cloud


def launch(cloud: Cloud, pod: SimPod) -> None:
    """Begin the life of a fresh pod; the meter runs from here."""
    pod.stage, pod.stage_at = Stage.PLACE, cloud.now + timedelta(seconds=cloud.timings.placement)
    _meter_running(cloud, pod)


def start(cloud: Cloud, pod: SimPod) -> None:
    """Start a stopped pod on its own host. The caller has checked that the GPUs are free."""
    pod.stopped_at = None
    pod.holds_gpus = True
    pod.ended_by = None
    pod.former_ports = pod.ports
    _begin_starting(cloud, pod)
    _meter_running(cloud, pod)


def restart(cloud: Cloud, pod: SimPod) -> None:
    """Restart or reset a running pod: the container disk goes, ports and `startedAt` are new."""
    cloud.orders.append(StopContainer(pod.id))
    pod.former_ports = pod.ports
    _begin_starting(cloud, pod)


def stop(cloud: Cloud, pod: SimPod, by: str = "user") -> None:
    """Stop a pod: it keeps its host and its volume, frees its GPUs, and bills for the volume at the stopped rate."""
    cloud.orders.append(StopContainer(pod.id))
    _halt(pod)
    pod.status, pod.stopped_at, pod.ended_by = Status.EXITED, cloud.now, by
    pod.holds_gpus = False
    rate = stopped_disk_rate(volume_size(pod))
    cloud.ledger.meter(pod.account, pod.id, Meter.STOPPED, cloud.now, Decimal(0), rate)
    pod.log(cloud.now, "system", "stop container")


def terminate(cloud: Cloud, pod: SimPod, by: str = "user") -> None:
    """Delete a pod with its container disk and host-local volume; the meter stops."""
    cloud.orders.append(DestroyContainer(pod.id))
    _halt(pod)
    pod.status, pod.deleted_at, pod.ended_by = Status.TERMINATED, cloud.now, by
    pod.holds_gpus = False
    cloud.ledger.close(pod.id, cloud.now)


def lose_host(cloud: Cloud, pod: SimPod, status: Status) -> None:
    """The machine under a pod dies: its processes end, and RunPod bills nothing for a host that is down."""
    cloud.orders.append(StopContainer(pod.id))
    ports = pod.ports
    _halt(pod)
    pod.ports = ports
    pod.status = status
    cloud.ledger.close(pod.id, cloud.now)


def revive(cloud: Cloud, pod: SimPod) -> None:
    """The machine is back: containers that should run are started again, and billed."""
    _begin_starting(cloud, pod)
    _meter_running(cloud, pod)


def progress(cloud: Cloud, pod: SimPod) -> None:
    """Take the steps that are due at `cloud.now`."""
    if pod.stopped_at is not None:
        _reclaim(cloud, pod)
    while pod.stage is not Stage.NONE and pod.stage_at is not None and pod.stage_at <= cloud.now:
        if pod.stage is Stage.PLACE:
            pod.placed = True
            _begin_starting(cloud, pod)
        elif pod.stage is Stage.PULL:
            _pull(cloud, pod)
        elif pod.stage is Stage.CONTAINER:
            cloud.orders.append(StartContainer(pod.id, pod.starts))
            pod.stage, pod.stage_at = Stage.NONE, None


def container_is_up(cloud: Cloud, pod: SimPod, ports: tuple[PortMapping, ...]) -> None:
    """The host started the container: RUNNING, the mapping follows a little later."""
    pod.ports = ports
    pod.status = Status.RUNNING
    pod.running_at = pod.container_at = cloud.now
    pod.reachable = True
    pod.gpus_shown = 0 if cloud.faults.grip("zero-gpu", cloud.subject(pod), pod.id) else pod.gpu_count
    pod.log(cloud.now, "system", "start container")
    cloud.faults.grip("wedge-at-boot", cloud.subject(pod), pod.id)
    cloud.faults.grip("crash-loop", cloud.subject(pod), pod.id)


def align_network(cloud: Cloud, pod: SimPod) -> None:
    """Order the way in to be cut or restored where the faults say other than it is."""
    if pod.container_at is None:
        return
    cut = cut_mode(cloud, pod)
    if (cut is None) != pod.reachable:
        pod.reachable = cut is None
        cloud.orders.append(SetReachable(pod.id, pod.reachable, cut or "blackhole"))


def cut_mode(cloud: Cloud, pod: SimPod) -> str | None:
    """How a RUNNING pod is unreachable at this moment; None when it can be reached."""
    if not cloud.hosts[pod.host].alive:
        return "blackhole"
    rule = cloud.faults.held("wedge-at-boot", pod.id)
    if rule is not None and not rule.params["reachable"]:
        return "blackhole"
    rule = cloud.faults.held("wedge-later", pod.id)
    if rule is not None and not rule.params["reachable"]:
        return rule.text("mode")
    return None


def has_mapping(cloud: Cloud, pod: SimPod) -> bool:
    """Whether the host has published the ports of a RUNNING pod and the API would say so."""
    if pod.status is not Status.RUNNING or pod.container_at is None or not pod.ports:
        return False
    if cloud.now < pod.container_at + timedelta(seconds=cloud.timings.mapping):
        return False
    if cloud.faults.held("wedge-at-boot", pod.id) is not None:
        return False
    rule = cloud.faults.held("wedge-later", pod.id)
    return rule is None or rule.params["ports"] != "empty"


def deadlines(cloud: Cloud, pod: SimPod) -> list[datetime]:
    """When something happens to this pod by itself."""
    times = [pod.stage_at] if pod.stage_at is not None else []
    if pod.container_at is not None:
        times.append(pod.container_at + timedelta(seconds=cloud.timings.mapping))
    reclaim = cloud.hosts[pod.host].reclaim_after
    if pod.stopped_at is not None and reclaim is not None:
        times.append(pod.stopped_at + timedelta(seconds=reclaim))
    return times


def volume_size(pod: SimPod) -> int:
    """GB of the host-local volume; 0 without one."""
    return int(str(pod.persistent["size"])) if pod.persistent else 0


def _begin_starting(cloud: Cloud, pod: SimPod) -> None:
    pod.starts += 1
    pod.status = Status.STARTING
    pod.started_at = cloud.now
    pod.running_at = pod.container_at = None
    pod.ports = ()
    host = cloud.hosts[pod.host]
    image = pod.container.image
    cached = image in host.images
    seconds = cloud.timings.cached_pull if cached else _image(cloud, pod).pull_seconds
    slow = cloud.faults.grip("slow-pull", cloud.subject(pod), pod.id)
    if slow is not None:
        seconds += slow.number("seconds")
    pod.pull_until = cloud.now + timedelta(seconds=seconds)
    pod.log(cloud.now, "system", f"create container {image}")
    pod.stage = Stage.PULL
    pod.stage_at = min(pod.pull_until, cloud.now + timedelta(seconds=cloud.timings.pull_log_every))


def _pull(cloud: Cloud, pod: SimPod) -> None:
    image = pod.container.image
    if pod.pull_until is not None and cloud.now < pod.pull_until:
        pod.log(cloud.now, "system", f"create container: still fetching image {image}")
        pod.stage_at = min(pod.pull_until, cloud.now + timedelta(seconds=cloud.timings.pull_log_every))
        return
    subject = cloud.subject(pod)
    bad = cloud.faults.grip("bad-image", subject, pod.id)
    if bad is not None or not _image(cloud, pod).exists:
        pod.log(cloud.now, "system", f"failed to pull image: pull access denied for {image}, repository does not exist")
        pod.status = Status(bad.text("status")) if bad is not None else Status.STARTING
        pod.stage, pod.stage_at = Stage.NONE, None
        return
    too_small = cloud.faults.grip("disk-too-small", subject, pod.id) is not None
    looping = cloud.faults.grip("uptime-zero-loop", subject, pod.id) is not None
    if too_small or looping or pod.container.disk < _image(cloud, pod).size_gb:
        pod.status, pod.running_at = Status.RUNNING, cloud.now
        pod.stage, pod.stage_at = Stage.NONE, None
        if looping:
            line = "container: create: container create: Error response from daemon: layer does not exist"
            pod.log(cloud.now, "system", f"error creating container: {line}")
        return
    cloud.hosts[pod.host].images.add(image)
    pod.stage, pod.stage_at = Stage.CONTAINER, cloud.now


def _image(cloud: Cloud, pod: SimPod) -> Image:
    return cloud.images.get(pod.container.image) or Image(pull_seconds=cloud.timings.pull, size_gb=1)


def _halt(pod: SimPod) -> None:
    pod.stage, pod.stage_at = Stage.NONE, None
    pod.starts += 1
    pod.running_at = pod.container_at = None
    pod.former_ports = pod.ports
    pod.reachable = True


def _reclaim(cloud: Cloud, pod: SimPod) -> None:
    host = cloud.hosts[pod.host]
    if host.reclaim_after is None or pod.stopped_at is None or pod.gpu_count == 0 or pod.ended_by == "reclaimed":
        return
    if cloud.now >= pod.stopped_at + timedelta(seconds=host.reclaim_after):
        host.taken += min(pod.gpu_count, cloud.free_gpus(host))
        pod.ended_by = "reclaimed"


def _meter_running(cloud: Cloud, pod: SimPod) -> None:
    disk = running_disk_rate(pod.container.disk, volume_size(pod))
    cloud.ledger.meter(pod.account, pod.id, Meter.RUNNING, cloud.now, pod.price, disk)
