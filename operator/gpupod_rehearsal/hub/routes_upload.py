"""Routes of an upload that speak of paths and revisions: preupload and commit."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from gpupod_rehearsal.hub import refusals
from gpupod_rehearsal.hub.call import Call
from gpupod_rehearsal.hub.commits import make_commit
from gpupod_rehearsal.hub.gitpatterns import is_ignored, is_lfs
from gpupod_rehearsal.hub.objects import Snapshot
from gpupod_rehearsal.hub.payload import parse_commit


async def preupload(call: Call) -> web.Response:
    """Tell for each file how to upload it, whether git ignores it, and the identity of what is there now."""
    repository = call.writable()
    snapshot = repository.history.snapshot(call.revision(repository))
    body = await call.json()
    files: list[dict[str, Any]] = body.get("files", [])
    if len(files) > call.state.limits.preuploads_per_request:
        raise refusals.bad_request(f"At most {call.state.limits.preuploads_per_request} files per preupload")
    gitignore = body.get("gitIgnore")
    if gitignore is None:
        gitignore = _text(call, snapshot, ".gitignore")
    gitattributes = _text(call, snapshot, ".gitattributes")
    answers = []
    for file in files:
        path, size = str(file["path"]), int(file["size"])
        lfs = size > call.state.limits.regular_file_bytes or is_lfs(path, gitattributes)
        answer: dict[str, Any] = {
            "path": path,
            "uploadMode": "lfs" if lfs else "regular",
            "shouldIgnore": is_ignored(path, gitignore),
        }
        if path in snapshot:
            answer["oid"] = snapshot[path].content_id
        answers.append(answer)
    return web.json_response({"files": answers, "commitOid": call.revision(repository)})


async def commit(call: Call) -> web.Response:
    """Apply one commit; the dispatcher holds the repository's lock around it."""
    repository = call.writable()
    if call.request.query.get("create_pr") in ("1", "true"):
        raise refusals.HubRefusedError(501, "Pull requests are not simulated")
    payload = parse_commit(await call.request.read())
    branch = call.parts["revision"].removeprefix("refs/heads/")
    made = await make_commit(call.state, repository, branch, payload, call.user.user)
    return web.json_response(
        {
            "success": True,
            "commitOid": made.oid,
            "commitUrl": f"{call.state.url}/{repository.url_path}/commit/{made.oid}",
            "hookOutput": "",
        }
    )


def _text(call: Call, snapshot: Snapshot, path: str) -> str:
    entry = snapshot.get(path)
    return call.state.blobs.read(entry).decode("utf-8", "replace") if entry else ""
