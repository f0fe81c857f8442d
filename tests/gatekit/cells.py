"""A cell, its manifest, and what the Hub shows of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from gpupod_operator.api.sweepcell import Observation, SweepCellSpec, SweepCellStatus
from gpupod_operator.core.artifacts import AgentCell, HubCommit, HubFile, HubListing

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
POD = "pod-1"
STARTED = NOW - timedelta(hours=2)
CONTENT: Mapping[str, bytes] = {"eval/metrics.json": b'{"loss": 1}', "weights/a.bin": b"A" * 64}


def cell_spec(**changes: Any) -> SweepCellSpec:
    """A cell with one exact artifact and one of globs, below /workspace/out/c."""
    root = changes.pop("root", "/workspace/out/c")
    raw: dict[str, Any] = {
        "podRef": {"name": "sweep"},
        "sweep": "s",
        "source": {
            "doneFile": f"{root}/DONE",
            "artifacts": [
                {"name": "eval", "path": f"{root}/eval", "files": ["metrics.json"]},
                {"name": "weights", "path": f"{root}/weights", "include": ["*.bin"], "minFiles": 1},
            ],
        },
        "destination": {
            "repo": "org/results",
            "path": "sweep/c",
            "tokenSecretRef": {"name": "hf", "key": "token"},
        },
    }
    raw.update(changes)
    return SweepCellSpec.model_validate(raw)


def manifest_bytes(uid: str, content: Mapping[str, bytes] = CONTENT, **changes: Any) -> bytes:
    """A manifest of format 1, as the agent writes it."""
    done_ns = int((NOW - timedelta(minutes=30)).timestamp() * 1e9)
    raw: dict[str, Any] = {
        "format": 1,
        "cell": {"uid": uid, "name": uid, "namespace": "ml", "sweep": "s"},
        "attempt": "a1",
        "podId": POD,
        "takenAt": (NOW - timedelta(minutes=29)).isoformat().replace("+00:00", "Z"),
        "doneFile": {"path": "/workspace/out/c/DONE", "mtimeNs": done_ns, "size": 0},
        "artifacts": [],
        "files": [file_entry(path, data, done_ns - 1) for path, data in sorted(content.items())],
    }
    raw.update(changes)
    return json.dumps(raw, sort_keys=True, separators=(",", ":")).encode()


def file_entry(path: str, data: bytes, mtime_ns: int) -> dict[str, Any]:
    return {
        "artifact": path.split("/", 1)[0],
        "path": path,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "gitSha1": blob_sha1(data),
        "mtimeNs": mtime_ns,
    }


def listing(
    uid: str,
    content: Mapping[str, bytes] = CONTENT,
    *,
    on_hub: Mapping[str, bytes] | None = None,
    manifest: bytes | None = None,
    at: datetime = NOW,
    head: str = "head-1",
) -> HubListing:
    """A prefix that holds `on_hub` (default: `content`) and a manifest of `content`; `.bin` files are LFS."""
    data = manifest if manifest is not None else manifest_bytes(uid, content)
    shown = content if on_hub is None else on_hub
    files = {path: _hub_file(path, body) for path, body in shown.items()}
    files["_cell/manifest.json"] = _hub_file("_cell/manifest.json", data)
    return HubListing(head, at, files, data)


def empty_listing(at: datetime = NOW) -> HubListing:
    return HubListing("head-0", at, {})


def commit(
    uid: str, manifest: bytes, *, oid: str = "head-1", at: datetime | None = NOW - timedelta(minutes=90)
) -> HubCommit:
    digest = hashlib.sha256(manifest).hexdigest()
    trailers = f"SweepCell-Uid: {uid}\nSweepCell-Manifest: {digest}\nSweepCell-Attempt: a1\nSweepCell-Format: 1"
    return HubCommit(oid, f"cell {uid}", f"cell {uid}\n\n{trailers}\n", at)


def agent_cell(uid: str, state: str, *, content: Mapping[str, bytes] = CONTENT, **changes: Any) -> AgentCell:
    """The cell in the agent's state file; from Uploaded on with the digest of its manifest."""
    done = state in ("Produced", "Uploading", "Uploaded")
    fields: dict[str, Any] = {"uid": uid, "state": state, "done_seen": done}
    if state == "Uploaded":
        fields["manifest_digest"] = hashlib.sha256(manifest_bytes(uid, content)).hexdigest()
        fields["commit_oid"] = "head-1"
        fields["commit_at"] = NOW - timedelta(minutes=5)
    fields.update(changes)
    return AgentCell(**fields)


def status(
    phase: str | None = None, *, pod_id: str | None = POD, done: bool | None = None, **more: Any
) -> SweepCellStatus:
    """A status that was read on `pod_id` (None: never read)."""
    seen = None
    if pod_id is not None and done is not None:
        state = more.pop("state", "Produced" if done else "Producing")
        seen = Observation(pod_id=pod_id, pod_started_at=STARTED, done_seen=done, state=state, since=STARTED)
    return SweepCellStatus.model_validate({"phase": phase, "observation": seen, **more})


def digest_of(manifest: bytes) -> str:
    return hashlib.sha256(manifest).hexdigest()


def blob_sha1(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _hub_file(path: str, data: bytes) -> HubFile:
    if path.endswith(".bin"):
        sha = hashlib.sha256(data).hexdigest()
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha}\nsize {len(data)}\n".encode()
        return HubFile(path, len(data), blob_sha1(pointer), sha)
    return HubFile(path, len(data), blob_sha1(data))
