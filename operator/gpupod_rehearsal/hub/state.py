"""Everything the simulated Hub knows while it runs, in one place that the routes share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from gpupod_rehearsal.hub import refusals
from gpupod_rehearsal.hub.accounts import Accounts
from gpupod_rehearsal.hub.blobs import BlobStore
from gpupod_rehearsal.hub.clock import HubClock, WallClock
from gpupod_rehearsal.hub.faults import FaultBoard
from gpupod_rehearsal.hub.lfs_grants import LfsGrants
from gpupod_rehearsal.hub.limits import CommitQuota, HubLimits, RequestQuota
from gpupod_rehearsal.hub.registry import Registry, Repository
from gpupod_rehearsal.hub.xet_store import XetStore


@dataclass(frozen=True)
class LoggedRequest:
    """One request as it was answered. `status` is None when the connection was closed without an answer."""

    at: datetime
    method: str
    path: str
    operation: str
    repo: str | None
    user: str | None
    status: int | None
    fault: str | None

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at.isoformat(),
            "method": self.method,
            "path": self.path,
            "operation": self.operation,
            "repo": self.repo,
            "user": self.user,
            "status": self.status,
            "fault": self.fault,
        }


@dataclass
class HubState:
    """The Hub's memory. `limits` and `faults` may be changed while it runs; `url` is known once it listens."""

    workdir: Path
    clock: HubClock
    accounts: Accounts
    limits: HubLimits = field(default_factory=HubLimits)
    url: str = ""

    def __post_init__(self) -> None:
        self.blobs = BlobStore(self.workdir / "blobs")
        self.registry = Registry(self.workdir / "repos", self.blobs)
        self.xet = XetStore(self.workdir / "xet")
        self.grants = LfsGrants()
        self.faults = FaultBoard()
        self.request_quota = RequestQuota()
        self.commit_quota = CommitQuota()
        self.xet_tokens: set[str] = set()
        self.wall_clock = WallClock()
        self.requests: list[LoggedRequest] = []

    def refuse_beyond_storage(self, repository: Repository, added: Mapping[str, int]) -> None:
        """Raise the Hub's 403 when LFS objects (`added`: sha256 to bytes) would exceed the namespace's storage."""
        limits = self.limits
        quota = limits.private_storage_bytes if repository.private else limits.public_storage_bytes
        if quota is None:
            return
        stored = self.registry.stored_lfs_bytes(repository.namespace, private=repository.private)
        if stored + sum(added.values()) > quota:
            raise refusals.storage_quota(private=repository.private)
