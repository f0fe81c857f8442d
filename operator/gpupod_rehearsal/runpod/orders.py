"""What the model asks of the machines that hold the pods."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StartContainer:
    """Start the pod's container. `generation` tells the answers of successive starts apart."""

    pod_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class StopContainer:
    """End every process of the pod and wipe its container disk; volumes stay."""

    pod_id: str


@dataclass(frozen=True, slots=True)
class DestroyContainer:
    """End the pod for good, its host-local volume included."""

    pod_id: str


@dataclass(frozen=True, slots=True)
class SetReachable:
    """Cut or restore the way in. `mode` of a cut: blackhole (no answer) or refuse. Processes run on."""

    pod_id: str
    reachable: bool
    mode: str = "blackhole"


Order = StartContainer | StopContainer | DestroyContainer | SetReachable
