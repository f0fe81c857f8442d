"""The Hub's JSON, checked and turned into ours. A shape we do not know is unavailable, never a missing file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gpupod_operator.core.artifacts import HubCommit, HubFile
from gpupod_operator.ports import HubUnavailable


def head_of(info: Any) -> str:
    """The commit id in a revision's information."""
    head = info.get("sha") if isinstance(info, dict) else None
    if not isinstance(head, str) or not head:
        raise HubUnavailable("the Hub's answer names no head commit")
    return head


def files_of(page: Any, prefix: str) -> dict[str, HubFile]:
    """The files of one page of a listing, by path relative to `prefix` (no slash at its ends; '' is the root)."""
    below = f"{prefix}/" if prefix else ""
    files: dict[str, HubFile] = {}
    for item in _items(page):
        kind, path = item.get("type"), item.get("path")
        if kind == "directory":
            continue
        if kind != "file" or not isinstance(path, str) or not path.startswith(below):
            raise HubUnavailable("the Hub's listing holds an entry that is not below the prefix")
        relative = path[len(below) :]
        files[relative] = _file(relative, item)
    return files


def commits_of(page: Any) -> list[HubCommit]:
    """The commits of one page."""
    return [_commit(item) for item in _items(page)]


def _file(path: str, item: Mapping[str, Any]) -> HubFile:
    size, oid, lfs = item.get("size"), item.get("oid"), item.get("lfs")
    if not isinstance(size, int) or not isinstance(oid, str):
        raise HubUnavailable(f"the Hub's listing has no size or id for {path}")
    if lfs is None:
        return HubFile(path, size, oid)
    if not isinstance(lfs, dict) or not isinstance(lfs.get("oid"), str) or not isinstance(lfs.get("size"), int):
        raise HubUnavailable(f"the Hub's listing has an unreadable LFS entry for {path}")
    # The LFS entry counts: it describes the content, the outer one may describe the pointer.
    return HubFile(path, lfs["size"], oid, lfs["oid"].removeprefix("sha256:"))


def _commit(item: Mapping[str, Any]) -> HubCommit:
    oid, title, body = item.get("id"), item.get("title"), item.get("message") or ""
    if not isinstance(oid, str) or not isinstance(title, str) or not isinstance(body, str):
        raise HubUnavailable("the Hub's commit list is unreadable")
    return HubCommit(oid, title, f"{title}\n\n{body}" if body else title, _time(item.get("date")))


def _time(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _items(page: Any) -> Iterable[Mapping[str, Any]]:
    if not isinstance(page, list) or not all(isinstance(item, dict) for item in page):
        raise HubUnavailable("the Hub's answer is not a list")
    return page
