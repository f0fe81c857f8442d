"""The body of a commit request: newline-delimited JSON, a header line and one line per change."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any

from gpupod_rehearsal.hub import refusals

FORBIDDEN_SEGMENTS = frozenset({"", ".", "..", ".git"})


@dataclass
class CommitPayload:
    """What a commit asks for: `files` by path, `lfs` by path with (sha256, size or None for a copy)."""

    title: str = ""
    description: str = ""
    parent: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    lfs: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    deleted_files: list[str] = field(default_factory=list)
    deleted_folders: list[str] = field(default_factory=list)


def parse_commit(body: bytes) -> CommitPayload:
    """Read a commit request.

    Raises:
        HubRefusedError: 400, a line is malformed, the header is missing, or a path is not allowed.
    """
    payload = CommitPayload()
    header_seen = False
    for number, line in enumerate(body.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            key, value = item["key"], item["value"]
            if key == "header":
                header_seen = True
                _read_header(payload, value)
            else:
                _read_change(payload, key, value)
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
            raise refusals.bad_request(f"Invalid commit payload, line {number}: {type(error).__name__}") from error
    if not header_seen or not payload.title:
        raise refusals.bad_request("Invalid commit payload: a header with a summary is required")
    return payload


def _read_header(payload: CommitPayload, value: dict[str, Any]) -> None:
    payload.title = str(value["summary"])
    payload.description = str(value.get("description") or "")
    payload.parent = value.get("parentCommit") or None


def _read_change(payload: CommitPayload, key: str, value: dict[str, Any]) -> None:
    path = _allowed(value["path"])
    if key == "file":
        content = value["content"]
        base64_sent = value.get("encoding") == "base64"
        payload.lfs.pop(path, None)
        payload.files[path] = base64.b64decode(content, validate=True) if base64_sent else content.encode()
    elif key == "lfsFile":
        if value.get("algo", "sha256") != "sha256":
            raise ValueError("only sha256 is known")
        size = value.get("size")
        payload.files.pop(path, None)
        payload.lfs[path] = (str(value["oid"]).lower(), None if size is None else int(size))
    elif key == "deletedFile":
        payload.deleted_files.append(path)
    elif key == "deletedFolder":
        payload.deleted_folders.append(path)
    else:
        raise ValueError(f"unknown key {key!r}")


def _allowed(path: str) -> str:
    cleaned = path.rstrip("/")
    if any(segment in FORBIDDEN_SEGMENTS for segment in cleaned.split("/")):
        raise refusals.bad_request(f"Invalid path in commit: {path}")
    return cleaned
