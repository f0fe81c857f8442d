"""The one object that a pass works on: what was asked, what is seen, and the status being written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import CellsStatus, GpuPodStatus
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import CellFacts
from gpupod_operator.core.known import Fact
from gpupod_operator.core.ownership import Foreign, OwnedPod, claim
from gpupod_operator.core.plan import Action, Need
from gpupod_operator.core.policy import Policy
from gpupod_operator.core.provider import AccountIdentity, GpuOffer, Inventory, NetworkVolume, ProviderPod
from gpupod_operator.core.room import Room
from gpupod_operator.core.shell import ShellReading, ShellTarget


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object this is. `instance` is the operator's instance id (the uid of kube-system unless set)."""

    namespace: str
    name: str
    uid: str
    generation: int
    instance: str
    deleting: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    """When the API server made the object, by its clock."""


@dataclass(frozen=True, slots=True)
class SecretsReport:
    """Whether every Secret that the spec names can be used. Values never come here."""

    problem: str | None = None
    reason: Reason | None = None
    ssh_public_key: str | None = None
    fallbacks: tuple[str, ...] = ()
    """Names of vanished Secrets whose copy stands in."""


@dataclass(frozen=True, slots=True)
class InstallTry:
    """Installs of the agent with one input on one start of a pod: how many so far, and how the newest ended.

    Forgotten with the process; then one install more is made.
    """

    pod_id: str
    pod_started_at: datetime | None
    digest: str
    count: int
    at: datetime
    problem: str | None
    """None: it went well, as far as the session showed."""
    timer: datetime | None = None
    """The deadline that went with it."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known in this pass. None means "not asked"; an asked and unanswered question is `Unknown`."""

    inventory: Inventory | None = None
    """The shared observer's view; with `Need.LIST` gathered it is of a list begun in this pass."""
    listed_now: bool = False
    new_list: bool = False
    """A complete list arrived since the last pass of this object: a fresh observation."""
    recent_pod: ProviderPod | None = None
    """The pod as the answer to our own create or start showed it, until a list or GET does."""
    account: Fact[AccountIdentity] | None = None
    pod: Fact[ProviderPod | None] | None = None
    """GET of the recorded pod: `Known(None)` is a 404."""
    catalog: Fact[tuple[GpuOffer, ...]] | None = None
    volume: Fact[NetworkVolume | None] | None = None
    secrets: Fact[SecretsReport] | None = None
    system_log: Fact[tuple[str, ...]] | None = None
    shell: ShellReading | None = None
    """The last visit over SSH, of any age; `visited_now` says that it was made in this pass."""
    visited_now: bool = False
    cells: Fact[tuple[CellFacts, ...]] | None = None
    listed_cells: bool = False
    """`cells` carry Hub listings of this pass."""
    declared_cells: int | None = None
    """How many SweepCells the watch shows (a hint, never a permission)."""
    cells_summary: CellsStatus | None = None
    """The same, as counts by phase."""
    rivals: tuple[str, ...] = ()
    """Older objects that name the same pod in `spec.adopt.podId`."""
    registration: Callable[[GpuPodStatus], tuple[bool, Reason, str] | None] | None = None
    """The renderer's verdict on this object's row, given a status of it. Asked about the status that is about to be
    committed, so that the condition comes in the same write as what makes it true."""
    cells_digest: Fact[str] | None = None
    """Of the declared cells and their tokens, as the agent needs them; None while a token was never read."""
    ghost_deletes: Mapping[str, datetime] = field(default_factory=dict)
    """When this process last sent the DELETE of a ghost, by pod id, whatever came of it."""
    install: InstallTry | None = None
    agent_tree: str | None = None
    """Tree hash of the agent that this operator ships."""
    room: Room | None = None
    """What the operator's ceilings leave to this object; None where none is set."""


class Presence(StrEnum):
    """Is the recorded pod there? MISSING counts as live until the gone-proof is complete."""

    NONE = "None"
    PRESENT = "Present"
    FRESH = "Fresh"
    MISSING = "Missing"
    GONE = "Gone"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Ask:
    """End of the chain: these facts are needed first."""

    needs: frozenset[Need]


@dataclass(frozen=True, slots=True)
class Act:
    """End of the chain: write the status (with the intent in it), then do this."""

    action: Action
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Wait:
    """End of the chain: nothing to do now. The sentence says why, what unblocks it and what it costs."""

    reason: Reason
    message: str
    until: datetime | None = None
    stalled: bool = False
    at_once: bool = False
    """Something was recorded: look again without waiting."""
    steady: bool = False
    """Nothing is being worked towards: neither Reconciling nor Stalled."""


@dataclass(frozen=True, slots=True)
class Release:
    """End of the chain: the finalizer may go."""

    message: str


Step = Ask | Act | Wait | Release


@dataclass(slots=True)
class Scope:
    """Mutable on purpose: phase functions refine `status` and `conditions` in order; nothing else is written."""

    identity: Identity
    spec: GpuPodSpec
    before: GpuPodStatus
    facts: Facts
    now: datetime
    policy: Policy
    entropy: str
    """Fresh random hex for ids and nonces; the only chance in here."""
    status: GpuPodStatus = field(default_factory=GpuPodStatus)
    presence: Presence = Presence.NONE
    pod: ProviderPod | None = None
    """The recorded pod as last seen; present also while the newest answer is unknown."""
    conditions: dict[str, tuple[str, Reason, str]] = field(default_factory=dict)
    wakes: list[timedelta] = field(default_factory=list)

    def put(self, **changes: Any) -> None:
        """Replace top-level fields of the status."""
        self.status = self.status.model_copy(update=changes)

    def put_attempt(self, **changes: Any) -> None:
        """Change fields of the present attempt; it must exist."""
        if self.status.attempt is None:
            raise ValueError("no attempt to change")
        self.put(attempt=self.status.attempt.model_copy(update=changes))

    def condition(self, kind: str, value: bool | None, reason: Reason, message: str) -> None:
        """Set a condition of this pass: True, False or unknown (None)."""
        self.conditions[kind] = ("Unknown" if value is None else str(value), reason, message)

    def wake_in(self, delay: timedelta) -> None:
        self.wakes.append(max(delay, timedelta(0)))

    def wake_at(self, moment: datetime) -> None:
        if moment < self.now:
            return  # passed without effect: what is waited for now is something else, and this would be a busy loop
        # a hair later, so that strict comparisons with the deadline hold on waking
        self.wake_in(moment - self.now + timedelta(milliseconds=10))

    @property
    def pod_id(self) -> str | None:
        return self.status.attempt.pod_id if self.status.attempt is not None else None

    @property
    def visits_wanted(self) -> bool:
        """Is there anything on the pod to look at, beyond its port mapping?"""
        return bool(self.spec.workload.command) or bool(self.facts.declared_cells)

    @property
    def adopt_id(self) -> str | None:
        """The pod that `spec.adopt` names, while it has an effect."""
        return self.spec.adopt.pod_id if self.spec.adopt is not None else None

    @property
    def price(self) -> str:
        """`$1.99/h` of the recorded pod, for messages; `unknown price` when it was never seen."""
        pod = self.status.pod
        cost = pod.cost_per_hour if pod is not None else None
        return f"${cost.normalize():f}/h" if cost is not None else "unknown price"

    def handle(self, pod: ProviderPod) -> OwnedPod | Foreign:
        """The ownership check for this object."""
        return claim(pod, instance=self.identity.instance, uid=self.identity.uid, adopt_id=self.adopt_id)

    def target(self) -> ShellTarget | None:
        """Where to log in: the effective endpoint (a person's override first), None without one."""
        endpoint = self.status.endpoint
        if endpoint is None or endpoint.host is None or endpoint.port is None or self.pod_id is None:
            return None
        return ShellTarget(self.pod_id, endpoint.host, endpoint.port, endpoint.host_key)
