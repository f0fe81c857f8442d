"""The manifest: what exactly a commit claims to hold. Its digest joins agent, commit and verification."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gpupod_cell import FORMAT
from gpupod_cell.layout import encode
from gpupod_cell.orders import CONTROL_FOLDER, Order
from gpupod_cell.refusal import BAD_INPUT, Refusal
from gpupod_cell.walk import Found, Stamp, Walk, stamp

PATH = f"{CONTROL_FOLDER}/manifest.json"
"""Where the manifest lies below the destination."""

CHUNK = 4 * 1024 * 1024


@dataclass(frozen=True)
class Hashed:
    """One file with what the Hub will show for it: sha256 for LFS files, the git blob id for regular ones."""

    artifact: str
    path: str
    size: int
    sha256: str
    git_sha1: str
    mtime_ns: int


@dataclass(frozen=True)
class Manifest:
    """`data` are the exact bytes that are committed; `sources` says where each file was read, and its stamp."""

    data: bytes
    digest: str
    uid: str
    name: str
    namespace: str
    attempt: str
    taken_at: str
    done_mtime_ns: int
    done_size: int
    files: tuple[Hashed, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def take(
    order: Order,
    seen: Walk,
    *,
    pod_id: str,
    attempt: str,
    now: Callable[[], datetime],
    progress: Callable[[int], None] = lambda _: None,
) -> Manifest:
    """Hash every file in one pass. Raises Refusal `ChangedWhileReading` when a file moves underneath."""
    if seen.done is None:
        raise ValueError("a manifest is only taken of a finished cell")
    files = tuple(_hashed(found, progress) for found in seen.files)
    value = {
        "format": FORMAT,
        "cell": {"uid": order.uid, "name": order.name, "namespace": order.namespace, "sweep": order.sweep},
        "attempt": attempt,
        "podId": pod_id,
        "takenAt": now().astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "doneFile": {"path": order.done_file, "mtimeNs": seen.done.mtime_ns, "size": seen.done.size},
        "artifacts": [{"name": artifact.name, "path": artifact.path} for artifact in order.artifacts],
        "files": [
            {
                "artifact": file.artifact,
                "path": file.path,
                "size": file.size,
                "sha256": file.sha256,
                "gitSha1": file.git_sha1,
                "mtimeNs": file.mtime_ns,
            }
            for file in files
        ],
    }
    return read(encode(value))


def read(data: bytes) -> Manifest:
    """Parse manifest bytes. Raises ValueError when they are no manifest of a known format."""
    try:
        value: dict[str, Any] = json.loads(data)
        if value["format"] != FORMAT:
            raise ValueError(f"manifest format {value['format']!r} is not known")
        cell = value["cell"]
        return Manifest(
            data=data,
            digest=hashlib.sha256(data).hexdigest(),
            uid=cell["uid"],
            name=cell["name"],
            namespace=cell["namespace"],
            attempt=value["attempt"],
            taken_at=value["takenAt"],
            done_mtime_ns=value["doneFile"]["mtimeNs"],
            done_size=value["doneFile"]["size"],
            files=tuple(
                Hashed(f["artifact"], f["path"], f["size"], f["sha256"], f["gitSha1"], f["mtimeNs"])
                for f in value["files"]
            ),
        )
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"not a manifest: {type(problem).__name__} {problem}") from problem


def unchanged(seen: Walk) -> bool:
    """Whether every file is still what it was when it was looked at."""
    return all(stamp(found.source) == found.stamp for found in seen.files)


def blob_id(data: bytes) -> str:
    """The git blob id of the bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _hashed(found: Found, progress: Callable[[int], None]) -> Hashed:
    strong = hashlib.sha256()
    git = hashlib.sha1(b"blob %d\0" % found.stamp.size, usedforsecurity=False)
    count = 0
    try:
        with Path(found.source).open("rb") as source:
            # Never past the size it had: a file that grows as fast as it is read would be read for ever.
            while count <= found.stamp.size and (chunk := source.read(CHUNK)):
                strong.update(chunk)
                git.update(chunk)
                count += len(chunk)
                progress(len(chunk))
    except OSError as error:
        raise Refusal("Unreadable", f"{found.source}: {error.strerror}", BAD_INPUT, retry_after=60) from error
    if count != found.stamp.size or stamp(found.source) != found.stamp:
        raise Refusal(
            "ChangedWhileReading",
            f"{found.source} changed while it was read; the done file must be written last",
            BAD_INPUT,
            retry_after=30,
        )
    return Hashed(found.artifact, found.path, count, strong.hexdigest(), git.hexdigest(), found.stamp.mtime_ns)


def stamps(seen: Walk) -> dict[str, list[int]]:
    """The stamps of a walk as JSON, to recognise an unchanged cell without reading it again."""
    return {found.path: _flat(found.stamp) for found in seen.files}


def _flat(seen: Stamp) -> list[int]:
    return [seen.size, seen.mtime_ns, seen.inode, seen.ctime_ns]
