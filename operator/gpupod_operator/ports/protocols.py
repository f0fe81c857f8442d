"""What the runtime needs from the outside, as Protocols.

Every implementation raises only the errors of this package from its public methods (and `asyncio.CancelledError`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from gpupod_operator.core.artifacts import HubCommit, HubDestination, HubListing
from gpupod_operator.core.ownership import OwnedPod
from gpupod_operator.core.provider import (
    AccountIdentity,
    CreateRequest,
    GpuOffer,
    NetworkVolume,
    PatchRequest,
    ProviderPod,
)
from gpupod_operator.core.shell import ShellReading, ShellTarget


class Clock(Protocol):
    """The only source of time."""

    def now(self) -> datetime:
        """The current time, timezone-aware UTC."""
        ...


class GpuProvider(Protocol):
    """A lane that rents GPU pods. RunPod's REST v2 is the only one built.

    Reads raise ProviderError with UNAVAILABLE, API_GONE, THROTTLED, UNAUTHORIZED, FORBIDDEN or NOT_FOUND. Mutating
    calls take the typed handle that only the ownership check makes, so a foreign pod cannot be written to.
    """

    async def account(self) -> AccountIdentity: ...

    async def list_pods(self) -> tuple[ProviderPod, ...]:
        """Every pod of the account. All pages or ProviderError: never a part."""
        ...

    async def get_pod(self, pod_id: str) -> ProviderPod: ...

    async def create_pod(self, request: CreateRequest, env: Mapping[str, str]) -> ProviderPod:
        """Create; repeated inside only on 429 that was refused before processing. AMBIGUOUS is never repeated."""
        ...

    async def delete_pod(self, pod: OwnedPod) -> None: ...

    async def stop_pod(self, pod: OwnedPod) -> ProviderPod | None: ...

    async def start_pod(self, pod: OwnedPod) -> ProviderPod | None: ...

    async def patch_pod(self, pod: OwnedPod, change: PatchRequest, env: Mapping[str, str] | None) -> ProviderPod: ...

    async def gpu_offers(self) -> tuple[GpuOffer, ...]: ...

    async def network_volume(self, volume_id: str) -> NetworkVolume: ...

    async def system_log(self, pod_id: str, lines: int = 100) -> tuple[str, ...]:
        """The last lines of the host's log of the pod (image pull, container start), oldest first."""
        ...


class ArtifactHub(Protocol):
    """Where results are kept and checked. Reads only: the commits are made by the agent on the pod."""

    async def list_prefix(self, destination: HubDestination, token: str | None) -> HubListing: ...

    async def commits(
        self, destination: HubDestination, token: str | None, limit: int = 50, wanted: frozenset[str] = frozenset()
    ) -> tuple[HubCommit, ...]:
        """The newest commits; reading stops early once a commit of each of the `wanted` cells (uids) was read."""
        ...

    async def check_write(self, destination: HubDestination, token: str | None) -> None:
        """Pre-flight: raises unless the token may write to the repository. Creates nothing."""
        ...


class PodShell(Protocol):
    """SSH sessions on a rented pod. A lost connection or a missing exit status raises ShellError: unknown."""

    async def read(self, target: ShellTarget, key: str, *, level: str = "Auth") -> ShellReading:
        """One visit. `level` Mapping does nothing, Tcp connects only, Auth logs in and reads launches and agent.

        Never raises for an unreachable pod: the class in the reading says it.
        """
        ...

    async def install_agent(self, target: ShellTarget, key: str, *, settings: Mapping[str, Any]) -> str:
        """Put the agent's file tree on the pod if its hash differs and (re)start its loop; the tree hash.

        `settings`: hubEndpoint, tokens (by cell uid; handed over stdin into 0600 files on /dev/shm), attempt, podId.
        """
        ...

    async def write_cells(self, target: ShellTarget, key: str, cells: bytes) -> None:
        """Replace `/workspace/.gpupod/cells.json` atomically."""
        ...

    async def launch(
        self,
        target: ShellTarget,
        key: str,
        *,
        attempt: str,
        launch_id: str,
        pod_started_at: str,
        command: Sequence[str],
        check: Sequence[str],
        log_file: str | None,
    ) -> None:
        """Start the workload detached, once: a live recorded pid means it is running and nothing is started.

        Raises ShellError when the outcome is unknown, LaunchRefused when `check` failed.
        """
        ...

    async def drain(self, target: ShellTarget, key: str, *, attempt: str, grace_seconds: int = 60) -> None:
        """SIGTERM to the launch's process group, `grace_seconds`, SIGKILL; the agent is left alone."""
        ...

    async def capture_logs(self, target: ShellTarget, key: str, *, attempt: str, limit_bytes: int = 262144) -> str:
        """The tail of the workload's and agent's logs; at most `limit_bytes`."""
        ...


class Cluster(Protocol):
    """The Kubernetes API as the runtime uses it. Objects are plain JSON dicts."""

    async def get(self, plural: str, namespace: str, name: str) -> dict[str, Any]: ...

    async def list_cells(self, namespace: str, pod: str) -> tuple[dict[str, Any], ...]:
        """A live, complete list of the SweepCells of one GpuPod, deleted ones that still exist included."""
        ...

    async def list_all(self, plural: str, namespace: str | None = None) -> tuple[dict[str, Any], ...]: ...

    async def apply_status(
        self, plural: str, namespace: str, name: str, status: Mapping[str, Any], *, resource_version: str, uid: str
    ) -> dict[str, Any]:
        """Server-side apply of the whole status under our field manager, refused if the object changed."""
        ...

    async def set_finalizer(
        self, plural: str, namespace: str, name: str, finalizer: str, *, present: bool, resource_version: str
    ) -> dict[str, Any]: ...

    async def read_secret(self, namespace: str, name: str) -> Mapping[str, bytes]: ...

    async def apply_secret(
        self, namespace: str, name: str, data: Mapping[str, bytes], *, labels: Mapping[str, str]
    ) -> None: ...

    async def delete_secret(self, namespace: str, name: str) -> None: ...

    async def read_config(self, namespace: str, name: str) -> dict[str, Any] | None:
        """A ConfigMap or None when it does not exist."""
        ...

    async def apply_config(
        self,
        namespace: str,
        name: str,
        data: Mapping[str, str],
        *,
        labels: Mapping[str, str],
        owner: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the ConfigMap hold exactly `data`; with an ownerReference it goes with its owner."""
        ...

    async def delete_config(self, namespace: str, name: str) -> None: ...

    async def namespace_terminating(self, namespace: str) -> bool: ...

    async def emit(
        self, obj: Mapping[str, Any], *, kind: str, reason: str, message: str, warning: bool, action: str
    ) -> None:
        """One event on a transition. Raises ApiForbidden where it cannot be written; the caller logs instead."""
        ...
