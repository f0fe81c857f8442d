"""What a pass decides: facts it still needs, at most one act, the full new status, and when to look again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.core.ownership import OwnedPod
from gpupod_operator.core.provider import CreateRequest, PatchRequest
from gpupod_operator.core.shell import ShellTarget


class Need(StrEnum):
    """A question that only I/O can answer; the loop asks it under the same lock and decides again."""

    ACCOUNT = "Account"
    LIST = "List"
    POD = "Pod"
    CATALOG = "Catalog"
    VOLUME = "Volume"
    SECRETS = "Secrets"
    SYSTEM_LOG = "SystemLog"
    SHELL = "Shell"
    TOKENS = "Tokens"
    """Of the declared cells, so that `cells_digest` can be told."""
    CELLS = "Cells"
    LISTINGS = "Listings"


@dataclass(frozen=True, slots=True)
class CreatePod:
    """A paid act. `why` names the candidate and who allowed it."""

    request: CreateRequest
    why: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Irreversible. `ghost` marks the surplus of an ambiguous create, known by its nonce."""

    pod: OwnedPod
    why: str
    ghost: bool = False


@dataclass(frozen=True, slots=True)
class StopPod:
    """Ends billing of the GPU, not of the disks; what lies outside a volume is lost."""

    pod: OwnedPod
    why: str


@dataclass(frozen=True, slots=True)
class StartPod:
    """A paid act: resumes the same pod on the same host."""

    pod: OwnedPod
    why: str


@dataclass(frozen=True, slots=True)
class PatchPod:
    """Resets the container: its disk is wiped and its processes end."""

    pod: OwnedPod
    change: PatchRequest
    why: str


@dataclass(frozen=True, slots=True)
class InstallAgent:
    """Put `cells` (the agent's input) and the agent itself on the pod and start its loop."""

    target: ShellTarget
    attempt: str
    cells: bytes
    cells_digest: str
    pod_started_at: datetime | None = None
    timer: datetime | None = None
    """The deadline of the stop timer in `cells`; None: no timer."""


@dataclass(frozen=True, slots=True)
class LaunchWorkload:
    """Start the workload for one (pod id, start); a live recorded pid means that it runs already."""

    target: ShellTarget
    attempt: str
    launch_id: str
    pod_started_at: str
    command: tuple[str, ...]
    check: tuple[str, ...]
    log_file: str | None


@dataclass(frozen=True, slots=True)
class DrainWorkload:
    """Ask the workload to end so that the agent can finish; the agent is left alone."""

    target: ShellTarget
    attempt: str
    why: str


@dataclass(frozen=True, slots=True)
class CaptureLogs:
    """Save what can be had of the attempt's logs before the pod goes. May fail; never holds anything up."""

    pod_id: str
    attempt: str
    target: ShellTarget | None


Action = (
    CreatePod | DeletePod | StopPod | StartPod | PatchPod | InstallAgent | LaunchWorkload | DrainWorkload | CaptureLogs
)


@dataclass(frozen=True, slots=True)
class Transition:
    """Something worth an event: `reason` is CamelCase, `message` names the pod id."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome of one `decide`.

    With `needs` everything else is void: gather and decide again. `status` is complete (never a patch). `wake` is the
    latest time after which the loop looks again by itself; `release` says that our finalizer may go.
    """

    status: GpuPodStatus
    needs: frozenset[Need] = frozenset()
    action: Action | None = None
    wake: timedelta | None = None
    release: bool = False
    transitions: tuple[Transition, ...] = ()
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an act that was not a provider call ended. `ok` None: unknown."""

    ok: bool | None
    detail: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    at: datetime | None = None
