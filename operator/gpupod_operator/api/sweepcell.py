"""One cell of a sweep: what is produced, where it goes, and how far it has come."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from gpupod_operator.api.base import ApiModel, Text, at_most
from gpupod_operator.api.conditions import Condition
from gpupod_operator.api.durations import Duration
from gpupod_operator.api.gpupod_spec import SecretKeyRef
from gpupod_operator.api.gpupod_status import AbandonStatus
from gpupod_operator.api.phases import SweepCellPhase, VerificationState
from gpupod_operator.api.policies import RepoType, TokenFrom, UploadMode, Verify
from gpupod_operator.api.times import Time


class PodRef(ApiModel):
    """A GpuPod in the same namespace."""

    name: str


class Artifact(ApiModel):
    """Files under `path` (absolute, on the pod): an exact set in `files`, or globs in `include` with a minimum."""

    name: str
    path: str
    files: tuple[str, ...] | None = None
    include: tuple[str, ...] | None = None
    min_files: int | None = None


class Source(ApiModel):
    """`done_file` (absolute, on the pod) is written last by the producer."""

    done_file: str
    artifacts: tuple[Artifact, ...]


class Destination(ApiModel):
    """A prefix of one revision of one Hub repository. `path` has no leading or trailing slash."""

    repo: str
    type: RepoType = RepoType.DATASET
    revision: str = "main"
    path: str
    token_secret_ref: SecretKeyRef


class UploadSpec(ApiModel):
    """Who uploads, with which token, and when a silent upload is replayed."""

    mode: UploadMode = UploadMode.AGENT
    token_from: TokenFrom = TokenFrom.SECRET
    progress_deadline: Duration = timedelta(minutes=10)
    max_cells_per_commit: int = 1


class SweepCellSpec(ApiModel):
    """The spec of a SweepCell."""

    pod_ref: PodRef
    sweep: str
    source: Source
    destination: Destination
    upload: UploadSpec = UploadSpec()
    verify: Verify = Verify.HASH
    resync: Duration = timedelta(hours=6)


class Observation(ApiModel):
    """Where and how the cell was last read on a pod. The gate takes a cell never read on a pod id for unknown."""

    pod_id: str | None = None
    pod_started_at: Time | None = None
    done_seen: bool | None = None
    state: str | None = None
    since: Time | None = None


class FinishedStatus(ApiModel):
    """Where the done file was accepted: the pod, its start, and the attempt."""

    pod_id: str | None = None
    pod_started_at: Time | None = None
    attempt: str | None = None
    at: Time | None = None


class ManifestStatus(ApiModel):
    """The manifest that the cell's commit holds. `digest` is the sha256 of its bytes."""

    digest: str | None = None
    files: int | None = None
    bytes: int | None = None
    taken_at: Time | None = None
    attempt: str | None = None


class CommitStatus(ApiModel):
    """The commit on the Hub that holds the cell."""

    oid: str | None = None
    at: Time | None = None


class VerificationStatus(ApiModel):
    """The last verdict of a listing at commit `head`. `verified` counts files."""

    state: VerificationState | None = None
    head: str | None = None
    since: Time | None = None
    verified: int | None = None
    missing: Annotated[tuple[Text, ...] | None, at_most(20)] = None
    mismatched: Annotated[tuple[Text, ...] | None, at_most(20)] = None


class SweepCellStatus(ApiModel):
    """The status of a SweepCell; written as a whole, and only when it differs."""

    observed_generation: int | None = None
    phase: SweepCellPhase | None = None
    message: Text | None = None
    next_check: Time | None = None
    conditions: tuple[Condition, ...] = ()
    observation: Observation | None = None
    finished: FinishedStatus | None = None
    manifest: ManifestStatus | None = None
    commit: CommitStatus | None = None
    verification: VerificationStatus | None = None
    last_error: Text | None = None
    abandon: AbandonStatus | None = None
