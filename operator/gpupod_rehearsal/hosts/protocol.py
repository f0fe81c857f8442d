"""What the simulated cloud needs of whatever holds its pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class HostError(RuntimeError):
    """A host could not do what it was told; the text becomes a line of the pod's system log."""


class NamespacesUnavailable(RuntimeError):
    """The machine does not let us make mount and PID namespaces; the message is one line and says what to do."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a pod's SSH server listens."""

    ip: str
    port: int


@dataclass(frozen=True, slots=True)
class VolumeMount:
    """Storage under `path` in the pod. `network_volume` names shared storage; None is the pod's own volume."""

    path: str
    network_volume: str | None = None


@dataclass(frozen=True, slots=True)
class PodLaunch:
    """Everything a host needs to start a pod's container. `env` is what its sessions see."""

    pod_id: str
    env: Mapping[str, str]
    mount: VolumeMount | None = None
    authorized_keys: tuple[str, ...] = ()


class PodHost(Protocol):
    """The machines. Calls for one pod come one after another; calls for different pods may overlap."""

    #: True when a call ends without waiting for anything real, so that a virtual clock may rely on it.
    instant: bool

    async def start(self, pod: PodLaunch) -> Endpoint:
        """Start the container on a new port. Raises HostError, NamespacesUnavailable."""
        ...

    async def set_reachable(self, pod_id: str, reachable: bool, mode: str = "blackhole") -> None:
        """Cut (`mode` blackhole or refuse) or restore the way in, while the pod's processes run on."""
        ...

    async def stop(self, pod_id: str) -> None:
        """End every process of the pod and wipe its container disk; volumes stay."""
        ...

    async def restart(self, pod: PodLaunch) -> Endpoint:
        """`stop`, then `start`: a new port and a new host key."""
        ...

    async def terminate(self, pod_id: str) -> None:
        """`stop`, and the host-local volume is gone too."""
        ...

    async def close(self) -> None:
        """End everything this host ever started."""
        ...
