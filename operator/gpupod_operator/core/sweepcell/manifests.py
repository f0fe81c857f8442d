"""The manifest that the agent commits beside a cell's files: reading it, strictly, from its exact bytes.

Format 1, as written by gpupod_cell: the digest is the sha256 of the bytes as they are, so nothing is normalised here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gpupod_operator.core.artifacts import HubCommit, Manifest, ManifestFile

MANIFEST_PATH = "_cell/manifest.json"
"""Relative to the destination's prefix."""

KNOWN_FORMATS = frozenset({1})
_MAX_BYTES = 16 * 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")
_FRACTION = re.compile(r"(\.\d{6})\d+")


@dataclass(frozen=True, slots=True)
class NewerFormat:
    """Written by a newer agent than this operator knows: nothing can be said about it."""

    format: object


@dataclass(frozen=True, slots=True)
class Trailers:
    """The trailers of a cell's commit."""

    oid: str
    at: datetime | None
    uid: str
    digest: str
    attempt: str | None


def read_manifest(data: bytes) -> Manifest | NewerFormat | str:
    """The manifest, or a sentence that says what is wrong with the bytes (never part of their content)."""
    if len(data) > _MAX_BYTES:
        return f"it is larger than {_MAX_BYTES} bytes"
    try:
        raw = json.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(raw, dict):
        return "it is not a JSON object"
    if raw.get("format") not in KNOWN_FORMATS:
        return NewerFormat(raw.get("format")) if isinstance(raw.get("format"), int) else "it has no format number"
    try:
        return _parse(raw, hashlib.sha256(data).hexdigest())
    except _Invalid as problem:
        return str(problem)


def find_trailers(commits: tuple[HubCommit, ...], cell_uid: str) -> Trailers | None:
    """The trailers of the newest commit of this cell (`commits` are newest first)."""
    for commit in commits:
        found = dict(
            line.split(": ", 1)
            for line in commit.message.splitlines()
            if line.startswith("SweepCell-") and ": " in line
        )
        digest = found.get("SweepCell-Manifest", "").strip()
        if found.get("SweepCell-Uid", "").strip() == cell_uid and _SHA256.fullmatch(digest):
            attempt = found.get("SweepCell-Attempt", "").strip() or None
            return Trailers(commit.oid, commit.at, cell_uid, digest, attempt)
    return None


class _Invalid(Exception):
    """A sentence about the manifest."""


def _parse(raw: Mapping[str, Any], digest: str) -> Manifest:
    cell = _part(raw, "cell", dict)
    done = _part(raw, "doneFile", dict)
    done_mtime = _integer(done, "mtimeNs")
    files: list[ManifestFile] = []
    seen: set[str] = set()
    for entry in _part(raw, "files", list):
        if not isinstance(entry, dict):
            raise _Invalid("an entry of `files` is not an object")
        parsed = _file(entry)
        if parsed.path in seen:
            raise _Invalid(f"it names {parsed.path!r} twice")
        # A done file that is older than what it stands for is left over from an earlier life of the volume.
        if isinstance(entry.get("mtimeNs"), int) and entry["mtimeNs"] > done_mtime:
            raise _Invalid(f"{parsed.path!r} is newer than the done file")
        seen.add(parsed.path)
        files.append(parsed)
    taken_at = _time(_part(raw, "takenAt", str))
    if taken_at.timestamp() * 1e9 + 1e9 < done_mtime:
        # One second of grace: takenAt may be written with whole seconds.
        raise _Invalid("it was taken before the done file was written")
    return Manifest(digest, _part(cell, "uid", str), _part(raw, "attempt", str), taken_at, done_mtime, tuple(files))


def _file(entry: Mapping[str, Any]) -> ManifestFile:
    path = _part(entry, "path", str)
    if not path or path.startswith("/") or ".." in path.split("/"):
        raise _Invalid(f"the path {path!r} leaves the cell's prefix")
    sha256, git_sha1 = _part(entry, "sha256", str), _part(entry, "gitSha1", str)
    if not _SHA256.fullmatch(sha256) or not _SHA1.fullmatch(git_sha1):
        raise _Invalid(f"{path!r} has no valid hashes")
    size = _integer(entry, "size")
    if size < 0:
        raise _Invalid(f"{path!r} has a negative size")
    return ManifestFile(_part(entry, "artifact", str), path, size, sha256, git_sha1)


def _part(raw: Mapping[str, Any], key: str, kind: type) -> Any:
    value = raw.get(key)
    if not isinstance(value, kind):
        raise _Invalid(f"`{key}` is missing or of the wrong type")
    return value


def _integer(raw: Mapping[str, Any], key: str) -> int:
    value = raw.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Invalid(f"`{key}` is missing or not a whole number")
    return value


def _time(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(_FRACTION.sub(r"\1", text))
    except ValueError:
        raise _Invalid("`takenAt` is not a time") from None
    if parsed.tzinfo is None:
        raise _Invalid("`takenAt` has no time zone")
    return parsed.astimezone(UTC)
