"""What the provider shows us, as plain data.

Parsed leniently by the client: a missing field is None, an unknown status is `ProviderState.UNKNOWN` and never "gone".
Container environment values stay out of here on purpose (they may hold secrets); only our two stamps are carried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


class ProviderState(StrEnum):
    """Observed status of a pod (REST v2). Anything new maps to UNKNOWN: kept, alerted, counted as billing."""

    PROVISIONING = "PROVISIONING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    EXITED = "EXITED"
    ERROR = "ERROR"
    TERMINATED = "TERMINATED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class PortMapping:
    """One entry of `runtime.ports`. `public` and `ip` are None while the mapping is unfinished."""

    private: int
    public: int | None
    ip: str | None
    protocol: str = "tcp"


@dataclass(frozen=True, slots=True)
class Stamp:
    """The two stamps that every pod of ours carries in its environment.

    `owner` is `<instance>/<namespace>/<name>/<uid>`, `nonce` the attempt's nonce.
    """

    owner: str
    nonce: str

    @property
    def uid(self) -> str:
        """The object's uid: the last part of the owner stamp."""
        return self.owner.rsplit("/", 1)[-1]

    @property
    def instance(self) -> str:
        """The operator instance: the first part of the owner stamp."""
        return self.owner.split("/", 1)[0]

    @property
    def namespace(self) -> str:
        """The object's namespace: the second part of the owner stamp, empty where there is none."""
        return self.owner.split("/")[1] if "/" in self.owner else ""


@dataclass(frozen=True, slots=True)
class ProviderPod:
    """A pod as the provider shows it. `cost_per_hour` in USD, 0 when EXITED (stopped disks are not in it)."""

    id: str
    name: str
    state: ProviderState
    raw_state: str
    stamp: Stamp | None = None
    image: str | None = None
    ports: tuple[str, ...] = ()
    gpu_type_id: str | None = None
    gpu_count: int | None = None
    cost_per_hour: Decimal | None = None
    cloud: str | None = None
    data_center: str | None = None
    host_hint: str | None = None
    """Suffix of the SSH proxy user: a plausible fingerprint of the host, a hint only. None until placed."""
    placed: bool = False
    has_runtime: bool = False
    mappings: tuple[PortMapping, ...] = ()
    gpus_visible: int | None = None
    """Length of `runtime.gpus`, None when the runtime block is missing."""
    container_disk_gb: int | None = None
    persistent_gb: int | None = None
    network_volume_id: str | None = None
    locked: bool = False
    created_at: datetime | None = None
    started_at: datetime | None = None

    @property
    def live(self) -> bool:
        """Exists for the provider: everything but TERMINATED (which still needs the gone-proof)."""
        return self.state is not ProviderState.TERMINATED

    def mapping(self, private: int) -> PortMapping | None:
        """The TCP mapping entry of a private port, finished or not."""
        for port in self.mappings:
            if port.private == private and port.protocol == "tcp":
                return port
        return None


class InventoryState(StrEnum):
    """COMPLETE: every page was read. SUSPECT: complete but implausible. UNKNOWN: anything else."""

    COMPLETE = "Complete"
    SUSPECT = "Suspect"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Inventory:
    """The account's pods, as of the last list call that the shared observer made.

    `sequence` counts complete lists since the process began; `pods` are those of the last complete list, also while
    the newest answer is unknown or suspect (so that rows survive). `absent` counts, by pod id, the complete lists in a
    row that did not show it since it was last seen or first asked about. `seen` are ids that any complete list showed.
    """

    state: InventoryState
    reason: str
    message: str
    at: datetime
    complete_at: datetime | None
    sequence: int
    pods: Mapping[str, ProviderPod] = field(default_factory=dict)
    absent: Mapping[str, int] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()

    @property
    def fresh(self) -> bool:
        return self.state is InventoryState.COMPLETE

    def of_uid(self, uid: str) -> tuple[ProviderPod, ...]:
        """Live pods that carry the object's uid stamp, by id."""
        found = [p for p in self.pods.values() if p.stamp is not None and p.stamp.uid == uid and p.live]
        return tuple(sorted(found, key=lambda p: p.id))


@dataclass(frozen=True, slots=True)
class AccountIdentity:
    """Who pays. `verified` is False when the key lacks `account:read` and its fingerprint stands in for the id."""

    id: str
    key_fingerprint: str
    verified: bool


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """One GPU type of the catalog. Prices are USD per hour and single GPU."""

    id: str
    name: str
    memory_gb: int | None
    secure: bool
    community: bool
    price_secure: Decimal | None
    price_community: Decimal | None
    max_count_secure: int | None = None
    max_count_community: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkVolume:
    """A network volume: one data center for life; bills with no pod at all."""

    id: str
    name: str
    size_gb: int
    data_center: str


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """Everything but environment values, which the executor fills in from Secrets at the moment of the call.

    `disk_gb` and `gpu_count` are always sent: the vendor's defaults are a misleading "no capacity".
    """

    name: str
    image: str
    gpu_type_id: str
    gpu_count: int
    cloud: str
    data_centers: tuple[str, ...]
    disk_gb: int
    ports: tuple[str, ...]
    stamp: Stamp
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    registry: str | None = None
    persistent_gb: int | None = None
    persistent_path: str | None = None
    network_volume_id: str | None = None
    network_volume_path: str | None = None
    min_cuda_version: str | None = None
    min_ram_per_gpu_gb: int | None = None
    min_vcpu_per_gpu: int | None = None


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """Container fields to change in place; None is "not sent". Everything but `name` resets the container."""

    name: str | None = None
    image: str | None = None
    ports: tuple[str, ...] | None = None
    disk_gb: int | None = None
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    registry: str | None = None
    send_env: bool = False


class Failure(StrEnum):
    """What a refused or failed provider call means for us, whatever its HTTP status was."""

    AMBIGUOUS = "Ambiguous"
    """The effect may or may not have happened (5xx, timeout, reset, bad body of a 2xx)."""
    UNAVAILABLE = "Unavailable"
    """Nothing can be known or done now: transport block (1010), 5xx on a read, provider API gone."""
    API_GONE = "ApiGone"
    THROTTLED = "Throttled"
    NO_CAPACITY = "NoCapacity"
    INVALID = "Invalid"
    INSUFFICIENT_BALANCE = "InsufficientBalance"
    UNAUTHORIZED = "Unauthorized"
    FORBIDDEN = "Forbidden"
    NOT_FOUND = "NotFound"
    CONFLICT = "Conflict"
    HOST_FULL = "HostFull"


@dataclass(frozen=True, slots=True)
class Answer:
    """How a mutating call ended: a pod, nothing (204), or a failure with the vendor's own words."""

    failure: Failure | None = None
    detail: str = ""
    errors: tuple[str, ...] = ()
    request_id: str | None = None
    retry_after: float | None = None
    pod: ProviderPod | None = None
