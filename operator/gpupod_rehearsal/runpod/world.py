"""What a simulated cloud is made of besides pods: hosts, accounts with keys, network volumes, and its timings."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from gpupod_rehearsal.runpod.catalog import DATA_CENTERS, GPU_TYPES, Image


@dataclass(slots=True)
class Host:
    """One machine: `gpus` of one type in one data center, `taken` of them by tenants of other accounts.

    `reclaim_after` is how many seconds after a pod stops other tenants take the GPUs it freed; None is never.
    """

    id: str
    data_center: str
    gpu_type: str
    gpus: int = 8
    cloud: str = "SECURE"
    cuda: str | None = "12.8"
    ram_per_gpu: int = 125
    vcpu_per_gpu: int = 16
    public_ip: bool = True
    taken: int = 0
    alive: bool = True
    reclaim_after: float | None = None
    images: set[str] = field(default_factory=set)
    last_placed: int = 0

    @property
    def fingerprint(self) -> str:
        """Eight hex digits that follow the pod id in the SSH proxy's user name; the same for every pod of this host."""
        return hashlib.sha256(self.id.encode()).hexdigest()[:8]


@dataclass(slots=True)
class ApiKey:
    """A key of an account. `scopes` are `<resource>:read` or `:write`; `*` allows everything. `pod`: only that pod."""

    alias: str
    secret: str = field(repr=False)
    scopes: frozenset[str] = frozenset({"*"})
    pod: str | None = None

    def allows(self, scope: str) -> bool:
        """Whether this key may do what needs `scope`; write implies read."""
        return bool({"*", scope, scope.replace(":read", ":write")} & self.scopes)


@dataclass(slots=True)
class Account:
    """A user or a team. `deposited` minus the ledger is the balance; all amounts in USD, the limit per hour."""

    id: str
    email: str | None = None
    deposited: Decimal = Decimal(500)
    billing_mode: str = "PREPAID"
    spend_limit: Decimal = Decimal(80)
    keys: list[ApiKey] = field(default_factory=list)
    ssh_keys: list[str] = field(default_factory=list)
    templates: list[dict[str, object]] = field(default_factory=list)
    registries: list[dict[str, object]] = field(default_factory=list)
    secrets: list[dict[str, object]] = field(default_factory=list)


@dataclass(slots=True)
class NetworkVolume:
    """Storage of an account that lives in one data center and outlasts its pods. `size` in GB."""

    id: str
    account: str
    name: str
    size: int
    data_center: str
    created_at: datetime
    type: str = "STANDARD"
    deleted_at: datetime | None = None

    def view(self) -> dict[str, object]:
        """The vendor's NetworkVolume object."""
        return {
            "id": self.id,
            "name": self.name,
            "size": self.size,
            "dataCenter": self.data_center,
            "type": self.type,
        }


@dataclass(slots=True)
class Timings:
    """Seconds that the steps of a pod's life take when no fault interferes."""

    placement: float = 2.0
    pull: float = 20.0
    cached_pull: float = 3.0
    mapping: float = 2.0
    pull_log_every: float = 15.0
    balance_job: float = 300.0

    @classmethod
    def fast(cls) -> Timings:
        """For worlds on the real clock, where people or test runs wait."""
        return cls(placement=0.2, pull=0.6, cached_pull=0.2, mapping=0.3, pull_log_every=0.2, balance_job=1.0)


def default_hosts() -> list[Host]:
    """Two hosts of eight GPUs for every type in every data center, and community machines for some types."""
    hosts = []
    for gpu in GPU_TYPES:
        short = gpu.name.lower().replace(" ", "-")
        for center in DATA_CENTERS:
            hosts += [Host(f"{center.id.lower()}-{short}-{copy}", center.id, gpu.id) for copy in (1, 2)]
        if gpu.community_price is not None:
            hosts.append(Host(f"community-{short}", "", gpu.id, gpus=4, cloud="COMMUNITY", ram_per_gpu=60))
    return hosts


def default_images() -> dict[str, Image]:
    """Images with a story; any other image takes the default pull time and exists."""
    return {
        "runpod/pytorch:missing": Image(pull_seconds=5, exists=False),
        "ghcr.io/example/huge:1": Image(pull_seconds=600, size_gb=120),
    }


def default_accounts() -> list[Account]:
    """A team with three keys (all, one for reading only, one without account and billing), and a stranger's account."""
    narrow = frozenset({"pods:write", "catalog:read", "network-volumes:read"})
    team = [
        ApiKey("main", "rpa_simulated_main"),
        ApiKey("reader", "rpa_simulated_reader", frozenset({"pods:read", "account:read", "billing:read"})),
        ApiKey("narrow", "rpa_simulated_narrow", narrow),
    ]
    other = [ApiKey("other", "rpa_simulated_other")]
    return [
        Account("acct_main", "team@example.com", keys=team),
        Account("acct_other", "other@example.com", keys=other),
    ]
