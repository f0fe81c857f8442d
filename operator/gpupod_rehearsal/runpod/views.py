"""Pods as the API shows them: the truth, bent by whatever faults look at this pod."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from gpupod_rehearsal.runpod.contract import Profile
from gpupod_rehearsal.runpod.ledger import running_disk_rate
from gpupod_rehearsal.runpod.lifecycle import has_mapping
from gpupod_rehearsal.runpod.pod import ACTIONS, PortMapping, SimPod, Status

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.cloud import Cloud

_CENT_OF_CENT = Decimal("0.0001")


def pod_view(cloud: Cloud, pod: SimPod, profile: Profile) -> dict[str, object]:
    """The vendor's Pod object."""
    box = pod.container
    view: dict[str, object] = {
        "id": pod.id,
        "name": pod.name,
        "status": pod.status.value,
        "actions": list(ACTIONS[pod.status]),
        "image": box.image,
        "args": box.args,
        "disk": box.disk,
        "mounts": _mounts(pod),
        "ports": list(box.ports),
        "env": dict(box.env),
        "registry": box.registry,
        "template": None,
        "cloud": pod.cloud,
        "dataCenterId": pod.data_center if pod.placed else None,
        "cudaVersion": pod.cuda if pod.placed else None,
        "ssh": _ssh(cloud, pod),
        "cost": float(hourly_cost(pod)),
        "locked": pod.locked,
        "runtime": _runtime(cloud, pod),
        "globalNetworking": _global_networking(pod),
        "createdAt": rfc3339(pod.created_at),
        "startedAt": rfc3339(pod.started_at) if pod.started_at else None,
    }
    if pod.cpu_flavor is not None:
        view["cpu"] = {"id": pod.cpu_flavor, "vcpuCount": pod.vcpus, "memory": pod.memory}
    else:
        gpu: dict[str, object] = {"id": pod.gpu_type, "count": pod.gpus_shown}
        view["gpu"] = gpu
        if profile is Profile.NOVEMBER:
            gpu |= {"vcpuCount": pod.vcpus, "memory": pod.memory}
    if profile is Profile.NOVEMBER:
        view |= {"entrypoint": list(box.entrypoint), "cmd": list(box.cmd)}
    if pod.cluster is not None:
        view["cluster"] = pod.cluster
    return _distorted(cloud, pod, view)


def visible_ports(cloud: Cloud, pod: SimPod) -> tuple[PortMapping, ...]:
    """The mappings the API reports at this moment."""
    if pod.status is not Status.RUNNING or pod.started_at is None:
        return ()
    stale = cloud.faults.grip("stale-port-after-start", cloud.subject(pod), pod.id) if pod.former_ports else None
    if stale is not None and cloud.now < pod.started_at + timedelta(seconds=stale.number("seconds")):
        return pod.former_ports
    if not has_mapping(cloud, pod):
        return ()
    if cloud.faults.grip("private-mapping", cloud.subject(pod), pod.id) or not cloud.hosts[pod.host].public_ip:
        return tuple(PortMapping(port.private, None, port.protocol, None) for port in pod.ports)
    return pod.ports


def hourly_cost(pod: SimPod) -> Decimal:
    """What the API shows as `cost`: compute and container disk, 0 when stopped. A stopped volume does not show."""
    if pod.status in {Status.EXITED, Status.TERMINATED}:
        return Decimal(0)
    return (pod.price + running_disk_rate(pod.container.disk, 0)).quantize(_CENT_OF_CENT)


def rfc3339(at: datetime) -> str:
    """A UTC instant with a Z, without trailing zero fractions."""
    text = at.astimezone(UTC).isoformat(timespec="milliseconds" if at.microsecond else "seconds")
    return text.replace("+00:00", "Z")


def _mounts(pod: SimPod) -> dict[str, object]:
    if pod.persistent is not None:
        return {"persistent": dict(pod.persistent)}
    return {"network": [dict(pod.network)]} if pod.network is not None else {}


def _ssh(cloud: Cloud, pod: SimPod) -> dict[str, object]:
    proxy = direct = None
    if pod.placed and pod.alive:
        user = f"{pod.id}-{cloud.hosts[pod.host].fingerprint}"
        proxy = _endpoint("ssh.runpod.io", 22, user, f"ssh {user}@ssh.runpod.io")
    for port in visible_ports(cloud, pod):
        if port.private == 22 and port.public is not None and port.ip is not None:
            direct = _endpoint(port.ip, port.public, "root", f"ssh root@{port.ip} -p {port.public}")
    return {"proxy": proxy, "direct": direct}


def _endpoint(host: str, port: int, user: str, command: str) -> dict[str, object]:
    return {"host": host, "port": port, "username": user, "command": command}


def _runtime(cloud: Cloud, pod: SimPod) -> dict[str, object] | None:
    if pod.status is not Status.RUNNING or not cloud.hosts[pod.host].alive:
        return None
    if cloud.faults.fire("runtime-null-flicker", cloud.subject(pod)) is not None:
        return None
    if pod.container_at is None:
        looping = cloud.faults.held("uptime-zero-loop", pod.id) is not None
        return {"uptime": 0, "gpus": [], "ports": []} if looping else None
    uptime = int((cloud.now - pod.container_at).total_seconds())
    crashing = cloud.faults.held("crash-loop", pod.id)
    if crashing is not None:
        uptime %= max(1, int(crashing.number("seconds")))
    return {
        "uptime": uptime,
        "gpus": [{"util": 0, "memoryUtil": 0} for _ in range(pod.gpus_shown)],
        "cpu": {"util": 1},
        "memory": {"util": 2},
        "ports": [
            {"private": port.private, "public": port.public, "type": port.protocol, "ip": port.ip}
            for port in visible_ports(cloud, pod)
        ],
    }


def _global_networking(pod: SimPod) -> dict[str, object]:
    if not pod.global_networking:
        return {"enabled": False}
    return {"enabled": True, "ip": "10.65.1.42", "internalDns": f"{pod.id}.runpod.internal"}


def _distorted(cloud: Cloud, pod: SimPod, view: dict[str, object]) -> dict[str, object]:
    subject = cloud.subject(pod)
    strange = cloud.faults.fire("unknown-status", subject)
    if strange is not None:
        view["status"] = strange.text("status")
    missing = cloud.faults.fire("missing-fields", subject)
    if missing is not None:
        for name in missing.text("fields").split(","):
            view.pop(name.strip(), None)
    unknown = cloud.faults.fire("unknown-fields", subject)
    if unknown is not None:
        view[unknown.text("field")] = {"seen": True}
    return view
