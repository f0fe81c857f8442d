"""What the gate is asked: an act, and everything that this pass read about the pod and its cells."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.sweepcell import SweepCellSpec, SweepCellStatus
from gpupod_operator.core.artifacts import AgentCell, HubCommit, HubListing
from gpupod_operator.core.known import Fact
from gpupod_operator.core.provider import AccountIdentity, ProviderPod
from gpupod_operator.core.shell import ShellReading


class GateReason(StrEnum):
    """Why somebody wants to end, stop or reset the pod."""

    MIGRATE = "Migrate"
    REPLACE = "Replace"
    EXPIRE = "Expire"
    DELETE = "Delete"
    STOP = "Stop"
    RESET = "Reset"
    UNDO = "Undo"


class GateAct(StrEnum):
    """What would be done to the pod; it decides which disks survive."""

    DESTROY = "Destroy"
    """DELETE: only a network volume survives."""
    STOP = "Stop"
    """Stop: every mounted volume survives, the container disk does not."""
    RESET = "Reset"
    """PATCH of the container: every mounted volume survives, the container disk and all processes do not."""


class GateNeed(StrEnum):
    """Facts that this pass still has to read before the gate can answer."""

    ACCOUNT = "Account"
    POD = "Pod"
    CELLS = "Cells"
    SHELL = "Shell"
    """A visit over SSH. Where none is possible (no endpoint) the answer is a reading of class Timeout, never None."""
    HUB = "Hub"
    """Of every cell: `CellFacts.listing`, and `CellFacts.commits` (read after the visit, to see its writes)."""


@dataclass(frozen=True, slots=True)
class CellFacts:
    """One SweepCell of the pod, deleted ones that still exist included.

    `abandoned` is the person's reason text, if abandon-data on the cell or its GpuPod names exactly this pod id.
    `listing` and `commits` are None while not asked in this pass; `agent` is the cell in this pass's visit.
    """

    uid: str
    name: str
    spec: SweepCellSpec
    status: SweepCellStatus
    abandoned: str | None = None
    deleting: bool = False
    listing: Fact[HubListing] | None = None
    agent: AgentCell | None = None
    commits: Fact[tuple[HubCommit, ...]] | None = None


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """May this act be done to exactly this pod now? Every fact is of this pass, or None for "not read"."""

    reason: GateReason
    pod_id: str
    now: datetime
    spec: GpuPodSpec
    status: GpuPodStatus
    instance: str
    uid: str
    account: Fact[AccountIdentity] | None
    pod: Fact[ProviderPod] | None
    gone: bool
    """Proven gone, or never created."""
    cells: Fact[tuple[CellFacts, ...]] | None
    shell: ShellReading | None
    approved_by: str | None
    """Who set a valid approve-terminate for this pod id (the annotation's text where no person is known)."""
    recreate_problem: str | None
    """Why the spec could not create a pod now (placement, image; not money): migrations only. None: it could."""
    created_by_us: bool
    """This object created this pod id in a recorded attempt: not adopted, and not taken over by its stamp alone."""
    ever_contacted: bool
    """Any SSH session ever reached this pod id."""
    launch_confirmed: bool
    """A launch was confirmed on this pod id in any of its starts, or nobody knows that none was."""
    price_per_hour: Decimal | None
    contact_lost_at: datetime | None
    """Start of the present episode without contact; None while there is contact."""
    breaker_open: bool = False
    act: GateAct | None = None
    """None: by the reason, and for Expire and Delete the strictest (Destroy)."""
    first_start: bool = False
    """This pod id was never stopped and started: a host volume that was made with it has no older life."""
    abandoned: str | None = None
    """abandon-data on the GpuPod that names exactly this pod id (needed where no cell is declared)."""
    workload_ended_at: datetime | None = None
    """When the workload was known to be ended (drained, or first seen dead); None: taken from status."""

    @property
    def effective_act(self) -> GateAct:
        """The act, or the strictest that the reason allows."""
        if self.act is not None:
            return self.act
        if self.reason is GateReason.STOP:
            return GateAct.STOP
        if self.reason is GateReason.RESET:
            return GateAct.RESET
        return GateAct.DESTROY
