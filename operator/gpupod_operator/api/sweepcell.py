"""A SweepCell: one unit of a sweep whose results go to the Hub in one commit."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from gpupod_operator.api.base import Model
from gpupod_operator.api.conditions import Condition
from gpupod_operator.api.durations import Duration
from gpupod_operator.api.gpupod_spec import SecretKeyRef
from gpupod_operator.api.phases import SweepCellPhase
from gpupod_operator.api.times import Time


class PodRef(Model):
    name: str


class Artifact(Model):
    """`files` is an exact set; `include` is globs with a minimum of `min_files`. Never both."""

    name: str
    path: str
    files: tuple[str, ...] | None = None
    include: tuple[str, ...] | None = None
    min_files: int | None = None


class Source(Model):
    done_file: str
    artifacts: tuple[Artifact, ...]


class Destination(Model):
    """`path` is the prefix in the repository, without slashes at its ends."""

    repo: str
    type: Literal["dataset", "model"] = "dataset"
    revision: str = "main"
    path: str
    token_secret_ref: SecretKeyRef | None = None


class UploadSpec(Model):
    mode: Literal["Agent", "Operator", "External"] = "Agent"
    token_from: Literal["Secret", "PodEnv"] = "Secret"
    progress_deadline: Duration = timedelta(minutes=10)
    max_cells_per_commit: int = 1


class SweepCellSpec(Model):
    pod_ref: PodRef
    sweep: str
    source: Source
    destination: Destination
    upload: UploadSpec = Field(default_factory=UploadSpec)
    verify: Literal["Hash", "ReadBack"] = "Hash"
    resync: Duration = timedelta(hours=6)


class Observation(Model):
    """Where and how the cell was last read: the gate treats a cell never read on a pod id as unknown there."""

    pod_id: str | None = None
    pod_started_at: Time | None = None
    done_seen: bool | None = None
    state: str | None = None
    since: Time | None = None


class ManifestStatus(Model):
    digest: str | None = None
    files: int | None = None
    bytes: int | None = None
    taken_at: Time | None = None
    attempt: str | None = None


class CommitStatus(Model):
    oid: str | None = None
    at: Time | None = None


class VerificationStatus(Model):
    head: str | None = None
    since: Time | None = None
    verified: int | None = None
    missing: tuple[str, ...] | None = None
    mismatched: tuple[str, ...] | None = None


class SweepCellStatus(Model):
    observed_generation: int | None = None
    phase: SweepCellPhase | None = None
    message: str | None = None
    conditions: tuple[Condition, ...] = ()
    observation: Observation | None = None
    manifest: ManifestStatus | None = None
    commit: CommitStatus | None = None
    verification: VerificationStatus | None = None
    last_error: str | None = None
    next_check: Time | None = None
