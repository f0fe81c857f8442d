"""What a decision about one SweepCell is made from, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import SweepCellSpec, SweepCellStatus
from gpupod_operator.core.artifacts import AgentCell, HubCommit, HubListing
from gpupod_operator.core.known import Fact


@dataclass(frozen=True, slots=True)
class PodView:
    """The referenced GpuPod as a cell sees it (committed status, not the provider).

    `exists` is False when no such GpuPod is there. `pod_id` and `started_at` are of the recorded attempt (None while
    it has no pod). `running` is False for a pod that was stopped (EXITED). `contact_lost_at` is the start of the
    episode without contact. `gone_ids` are ids proven gone, `released_ids` those given up by Orphan or Stop.
    `ended` is the reason text of `status.ended`. `never_had_pod`: no pod id was ever recorded for it.
    `volume_paths` are mount paths of volumes; `network_volume_path` the one that outlives the pod.
    """

    exists: bool
    name: str
    attempt: str | None = None
    pod_id: str | None = None
    started_at: datetime | None = None
    running: bool = True
    contact_lost_at: datetime | None = None
    phase: str | None = None
    ended: str | None = None
    gone_ids: frozenset[str] = frozenset()
    released_ids: frozenset[str] = frozenset()
    never_had_pod: bool = False
    abandoned: str | None = None
    """abandon-data on the GpuPod that names the pod id this cell was last read on."""
    volume_paths: tuple[str, ...] = ()
    network_volume_path: str | None = None


@dataclass(frozen=True, slots=True)
class AgentView:
    """The cell in the agent's state file, with where and when it was read. `cell` None: it lists no such cell.

    `pod_id` is the one that the state file itself names: a network volume may hold the file of an older pod's agent.
    """

    pod_id: str
    pod_started_at: datetime | None
    attempt: str | None
    read_at: datetime
    running: bool
    cell: AgentCell | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A cause outside the cell: `reason` of the one enum, and a sentence with the remedy."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class CellScope:
    """Everything one decision sees. `agent` None: no fresh reading, so what is known is kept.

    `overlapping` is the name of an older cell whose destination overlaps. `token_problem` and `hub_problem` are
    sentences for people (no secrets) with a reason: a Secret that is missing, a repository that refuses writes.
    `abandoned` is the reason text of abandon-data on the cell itself, bound to the pod id it was last read on.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    spec: SweepCellSpec
    status: SweepCellStatus
    now: datetime
    pod: PodView
    deleting: bool = False
    has_finalizer: bool = True
    abandoned: str | None = None
    agent: AgentView | None = None
    listing: Fact[HubListing] | None = None
    commits: Fact[tuple[HubCommit, ...]] | None = None
    overlapping: str | None = None
    token_problem: Problem | None = None
    hub_problem: Problem | None = None
    not_built: str | None = None
    """Names of restricting fields that are set and not built yet: nothing is concluded while they are."""
    hub_checked_at: datetime | None = None
    """When the Hub was last asked for this cell, in memory only (status must not tick). None: not by this process."""


class CellNeed(StrEnum):
    """What has to be read before the cell can be decided."""

    HUB = "Hub"
    """Both the listing of the prefix and the newest commits of the revision."""


@dataclass(frozen=True, slots=True)
class CellEvent:
    """An event of a transition; emitted once, because it is made from the difference of two statuses."""

    reason: Reason
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class CellPlan:
    """`status` is the whole new status; write it only if it differs. With `needs`, read those and decide again.

    `finalizer` False: the finalizer goes now, because of `finalizer_why`. `next_check` is when to look again.
    """

    status: SweepCellStatus
    next_check: datetime
    needs: frozenset[CellNeed] = frozenset()
    events: tuple[CellEvent, ...] = ()
    finalizer: bool = True
    finalizer_why: str = ""
