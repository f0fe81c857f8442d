"""Routes that read a revision: listings, single paths, commits, content."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from aiohttp import web

from gpupod_rehearsal.hub import refusals
from gpupod_rehearsal.hub.call import Call
from gpupod_rehearsal.hub.history import Commit
from gpupod_rehearsal.hub.objects import Snapshot, StoredFile, lfs_pointer
from gpupod_rehearsal.hub.trees import directories


async def tree(call: Call) -> web.Response:
    """One page of a directory; a `Link` header names the next. Directories count as entries."""
    repository = call.readable()
    query = call.request.query
    oid = call.revision(repository)
    snapshot = repository.history.snapshot(oid)
    prefix = call.parts.get("path", "").strip("/")
    recursive, expanded = _flag(query.get("recursive")), _flag(query.get("expand"))
    below = f"{prefix}/" if prefix else ""
    inside = {path: entry for path, entry in snapshot.items() if path.startswith(below)}
    if prefix and not inside:
        raise refusals.entry_not_found(prefix, call.parts["revision"])
    entries = _directory_entries(directories(inside), below, recursive=recursive)
    entries += [
        _file_entry(path, entry) for path, entry in inside.items() if recursive or "/" not in path[len(below) :]
    ]
    entries.sort(key=lambda entry: str(entry["path"]))
    if expanded:
        log = repository.history.log(oid)
        for entry in entries:
            entry["lastCommit"] = _last_commit(log, str(entry["path"]))
    limits = call.state.limits
    size = limits.expanded_tree_page if expanded else limits.tree_page
    return _page(call, entries, min(size, _number(call, "limit", size)))


async def paths_info(call: Call) -> web.Response:
    """Entries of the named paths; missing ones are left out."""
    repository = call.readable()
    form = await call.request.post()
    wanted = [str(path).strip("/") for path in form.getall("paths", [])]
    if len(wanted) > call.state.limits.paths_per_request:
        raise refusals.HubRefusedError(413, "too many parameters")
    oid = call.revision(repository)
    snapshot = repository.history.snapshot(oid)
    folders = directories(snapshot) if any(path not in snapshot for path in wanted) else {}
    entries: list[dict[str, Any]] = []
    for path in dict.fromkeys(wanted):
        if path in snapshot:
            entries.append(_file_entry(path, snapshot[path]))
        elif path and path in folders:
            entries.append({"type": "directory", "path": path, "size": 0, "oid": folders[path]})
    if _flag(str(form.get("expand", ""))):
        log = repository.history.log(oid)
        for entry in entries:
            entry["lastCommit"] = _last_commit(log, str(entry["path"]))
    return web.json_response(entries)


async def commits(call: Call) -> web.Response:
    """One page of the revision's commits, newest first."""
    repository = call.readable()
    size = min(1000, _number(call, "limit", call.state.limits.commits_page))
    items = [
        {
            "id": commit.oid,
            "title": commit.title,
            "message": commit.description,
            "authors": [{"user": commit.author}],
            "date": _stamp(commit),
        }
        for commit in repository.history.log(call.revision(repository))
    ]
    return _page(call, items, size)


async def resolve(call: Call) -> web.Response:
    """The content of a file, or a `Range` of it; HEAD gives the headers alone."""
    repository = call.readable()
    oid = call.revision(repository)
    snapshot: Snapshot = repository.history.snapshot(oid)
    path = call.parts["path"]
    entry = snapshot.get(path)
    if entry is None:
        refusal = refusals.entry_not_found(path, call.parts["revision"])
        refusal.headers["X-Repo-Commit"] = oid
        raise refusal
    headers = {
        "X-Repo-Commit": oid,
        "ETag": f'"{entry.content_id}"',
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream",
    }
    if entry.sha256:
        headers |= {"X-Linked-Etag": f'"{entry.sha256}"', "X-Linked-Size": str(entry.size)}
    if call.request.method == "HEAD":
        return web.Response(headers=headers | {"Content-Length": str(entry.size)})
    wanted = call.request.http_range
    start = wanted.start or 0
    if start < 0:
        start = max(0, entry.size + start)
    stop = entry.size if wanted.stop is None else min(wanted.stop, entry.size)
    if start >= stop and entry.size:
        raise refusals.HubRefusedError(416, "Range not satisfiable", headers={"Content-Range": f"bytes */{entry.size}"})
    with call.state.blobs.path(entry).open("rb") as stream:
        stream.seek(start)
        body = stream.read(stop - start)
    if "Range" not in call.request.headers:
        return web.Response(body=body, headers=headers)
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{entry.size}"
    return web.Response(status=206, body=body, headers=headers)


def _directory_entries(oids: dict[str, str], below: str, *, recursive: bool) -> list[dict[str, Any]]:
    return [
        {"type": "directory", "path": path, "size": 0, "oid": oid}
        for path, oid in oids.items()
        if path and path.startswith(below) and (recursive or "/" not in path[len(below) :])
    ]


def _file_entry(path: str, entry: StoredFile) -> dict[str, Any]:
    item: dict[str, Any] = {"type": "file", "path": path, "size": entry.size, "oid": entry.oid}
    if entry.sha256:
        pointer = lfs_pointer(entry.sha256, entry.size)
        item["lfs"] = {"oid": entry.sha256, "size": entry.size, "pointerSize": len(pointer)}
    return item


def _last_commit(log: list[Commit], path: str) -> dict[str, str] | None:
    for commit in log:
        if path in commit.changed or any(changed.startswith(f"{path}/") for changed in commit.changed):
            return {"id": commit.oid, "title": commit.title, "date": _stamp(commit)}
    return None


def _stamp(commit: Commit) -> str:
    return commit.at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{commit.at.microsecond // 1000:03d}Z"


def _flag(value: str | None) -> bool:
    return (value or "").lower() in ("true", "1")


def _number(call: Call, name: str, default: int) -> int:
    text = call.request.query.get(name, str(default))
    if not text.isdecimal():
        raise refusals.bad_request(f"{name} must be a number")
    return int(text)


def _page(call: Call, items: list[dict[str, Any]], size: int) -> web.Response:
    start = _number(call, "cursor", 0)
    headers = {}
    if start + size < len(items):
        path = call.request.raw_path.partition("?")[0]
        query = dict(call.request.query) | {"cursor": str(start + size)}
        encoded = "&".join(f"{quote(name)}={quote(value)}" for name, value in query.items())
        headers["Link"] = f'<{call.state.url}{path}?{encoded}>; rel="next"'
    return web.json_response(items[start : start + size], headers=headers)
