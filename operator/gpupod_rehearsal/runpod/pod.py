"""A simulated pod: what was asked for, where it landed, and where it is in its life."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


class Status(StrEnum):
    """The vendor's observed status of a pod."""

    PROVISIONING = "PROVISIONING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    EXITED = "EXITED"
    ERROR = "ERROR"
    TERMINATED = "TERMINATED"


ACTIONS: dict[Status, tuple[str, ...]] = {
    Status.PROVISIONING: ("stop", "terminate"),
    Status.STARTING: ("stop", "terminate"),
    Status.RUNNING: ("stop", "restart", "terminate"),
    Status.EXITED: ("start", "terminate"),
    Status.ERROR: ("start", "terminate"),
    Status.TERMINATED: (),
}


class Stage(StrEnum):
    """The next thing that happens to a pod by itself."""

    PLACE = "place"
    PULL = "pull"
    CONTAINER = "container"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class PortMapping:
    """One published port: the container's, the host's, its protocol and the public address."""

    private: int
    public: int | None
    protocol: str
    ip: str | None


@dataclass(frozen=True, slots=True)
class LogLine:
    """One log line; `sequence` orders lines of the same instant."""

    at: datetime
    sequence: int
    source: str
    line: str


@dataclass(slots=True)
class ContainerConfig:
    """The container part of a pod, as asked for. `disk` in GB."""

    image: str
    args: str = ""
    entrypoint: list[str] = field(default_factory=list)
    cmd: list[str] = field(default_factory=list)
    disk: int = 20
    ports: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    registry: str | None = None


@dataclass(slots=True)
class SimPod:
    """The true state of a pod. `price` is USD an hour while it runs, without storage."""

    id: str
    account: str
    name: str
    container: ContainerConfig
    cloud: str
    created_at: datetime
    price: Decimal
    host: str
    data_center: str | None
    gpu_type: str | None = None
    gpu_count: int = 0
    cpu_flavor: str | None = None
    vcpus: int = 0
    memory: int = 0
    cuda: str | None = None
    persistent: dict[str, object] | None = None
    network: dict[str, str] | None = None
    global_networking: bool = False
    cluster: dict[str, object] | None = None
    status: Status = Status.PROVISIONING
    locked: bool = False
    placed: bool = False
    gpus_shown: int = 0
    holds_gpus: bool = True
    starts: int = 0
    stage: Stage = Stage.PLACE
    stage_at: datetime | None = None
    pull_until: datetime | None = None
    started_at: datetime | None = None
    running_at: datetime | None = None
    container_at: datetime | None = None
    stopped_at: datetime | None = None
    deleted_at: datetime | None = None
    ports: tuple[PortMapping, ...] = ()
    former_ports: tuple[PortMapping, ...] = ()
    reachable: bool = True
    logs: list[LogLine] = field(default_factory=list)
    ended_by: str | None = None

    @property
    def owner(self) -> str | None:
        """The operator's stamp, `<instance>/<namespace>/<name>/<uid>`, or None for a pod of somebody else."""
        return self.container.env.get("GPUPOD_OWNER")

    @property
    def key(self) -> str:
        """The key in its own environment, `RUNPOD_API_KEY`: it may read, stop and remove this pod and nothing else."""
        return f"rpa_pod{hashlib.sha256(f'{self.id}:{self.created_at}'.encode()).hexdigest()[:40]}"

    @property
    def alive(self) -> bool:
        """Whether the pod still exists at the vendor, stopped ones included."""
        return self.deleted_at is None

    @property
    def tcp_ports(self) -> list[int]:
        """Declared tcp ports of the container."""
        return [int(port.split("/")[0]) for port in self.container.ports if port.endswith("/tcp")]

    @property
    def http_ports(self) -> list[int]:
        """Declared http ports of the container."""
        return [int(port.split("/")[0]) for port in self.container.ports if port.endswith("/http")]

    def log(self, at: datetime, source: str, line: str) -> None:
        """Append one line to the pod's log."""
        self.logs.append(LogLine(at, len(self.logs) + 1, source, line))
