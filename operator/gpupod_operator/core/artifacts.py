"""Cells as data: what the agent on the pod reports, what the Hub shows, and the manifest that joins them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class HubDestination:
    """Where a cell's files go. `repo_type` is `dataset` or `model`; `path` has no leading or trailing slash."""

    repo: str
    repo_type: str
    revision: str
    path: str


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a listing. `path` is relative to the destination's prefix; `sha256` is set for LFS files only."""

    path: str
    size: int
    blob_id: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class HubListing:
    """One complete listing of a prefix at one head commit. An absent prefix is an empty listing."""

    head: str
    at: datetime
    files: Mapping[str, HubFile]
    manifest: bytes | None = None
    """Bytes of `_cell/manifest.json` under the prefix at that head, None when it is not listed."""


@dataclass(frozen=True, slots=True)
class HubCommit:
    """A commit of the destination's revision; `message` is title and description with the trailers."""

    oid: str
    title: str
    message: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One file as it was hashed on the pod. `path` is relative to the destination's prefix."""

    artifact: str
    path: str
    size: int
    sha256: str
    git_sha1: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a commit claims to hold; `digest` is the sha256 of the exact bytes."""

    digest: str
    cell_uid: str
    attempt: str
    taken_at: datetime
    done_file_mtime_ns: int
    files: tuple[ManifestFile, ...]

    @property
    def size(self) -> int:
        return sum(f.size for f in self.files)


@dataclass(frozen=True, slots=True)
class AgentCell:
    """One cell in the agent's state file.

    `state` is one of Pending, Producing, Produced, Uploading, Uploaded, Failed, Blocked. `error_exit` is the typed exit
    code of the upload (see gpupod_cell). Times are transition times.
    """

    uid: str
    state: str
    done_seen: bool
    manifest_digest: str | None = None
    manifest_files: int | None = None
    manifest_bytes: int | None = None
    manifest_taken_at: datetime | None = None
    commit_oid: str | None = None
    commit_at: datetime | None = None
    error_class: str | None = None
    error_message: str | None = None
    error_exit: int | None = None
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AgentTimer:
    """The stop timer as the agent shows it. `state` is Armed, Draining, Saving, Held, Stopping or Refused."""

    deadline: datetime | None
    state: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class AgentReading:
    """The agent's state file, as read over SSH in this pass."""

    running: bool
    tree_hash: str | None
    attempt: str | None
    pod_id: str | None
    heartbeat: datetime | None
    """Its last look at the cells, by our clock."""
    cells: Mapping[str, AgentCell] = field(default_factory=dict)
    problem: str | None = None
    """Why the agent cannot run here (for example Python older than 3.10 and no venv possible), for people."""
    timer: AgentTimer | None = None
    """None: it was told to hold none."""
