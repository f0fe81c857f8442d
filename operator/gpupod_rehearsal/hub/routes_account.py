"""Routes about the caller and about repositories as a whole."""

from __future__ import annotations

from aiohttp import web

from gpupod_rehearsal.hub import refusals
from gpupod_rehearsal.hub.call import Call
from gpupod_rehearsal.hub.commits import front_matter_errors
from gpupod_rehearsal.hub.objects import Snapshot, lfs_pointer
from gpupod_rehearsal.hub.registry import RepositoryExistsError


async def whoami(call: Call) -> web.Response:
    """Who the token belongs to."""
    return web.json_response(call.state.accounts.whoami(call.user))


async def agent_harnesses(_call: Call) -> web.Response:
    """The client's telemetry asks once a day; there is nothing to tell."""
    return web.json_response({"standardEnvVars": [], "harnesses": {}})


async def validate_yaml(call: Call) -> web.Response:
    """Check the front matter of a README before it is uploaded."""
    body = await call.json()
    errors = [{"message": text} for text in front_matter_errors(str(body.get("content", "")))]
    return web.json_response({"errors": errors, "warnings": []}, status=400 if errors else 200)


async def create_repo(call: Call) -> web.Response:
    """Create a repository; 409 with its url when it exists."""
    body = await call.json()
    kind = body.get("type") or "model"
    namespace = body.get("organization") or call.user.user
    repo_id = f"{namespace}/{body.get('name')}"
    if not call.state.accounts.can_write(call.user, namespace):
        raise refusals.namespace_forbidden(kind, namespace)
    private = body.get("visibility") == "private" or bool(body.get("private"))
    try:
        repository = call.state.registry.create(
            kind, repo_id, private=private, author=call.user.user, at=call.state.clock.now()
        )
    except RepositoryExistsError as error:
        existing = call.state.registry.find(kind, repo_id)
        url = f"{call.state.url}/{existing.url_path}" if existing else ""
        # The client reads the url of a 409 when it was told that the repository may exist.
        raise refusals.HubRefusedError(409, f"You already created this {kind} repo", fields={"url": url}) from error
    except ValueError as error:
        raise refusals.bad_request(str(error)) from error
    return web.json_response({"url": f"{call.state.url}/{repository.url_path}", "name": repo_id})


async def delete_repo(call: Call) -> web.Response:
    """Delete a repository and its history."""
    body = await call.json()
    namespace = body.get("organization") or call.user.user
    call.parts |= {"kind": f"{body.get('type') or 'model'}s", "namespace": namespace, "name": str(body.get("name"))}
    call.state.registry.delete(call.writable())
    return web.Response(text="OK")


async def repo_info(call: Call) -> web.Response:
    """A repository at a revision: head, visibility, and the list of paths (with sizes when asked).

    `expand` names the fields that are wanted, and spares the Hub the list of paths.
    """
    repository = call.readable()
    head = call.revision(repository)
    log = repository.history.log(head)
    info: dict[str, object] = {
        "author": repository.namespace,
        "sha": head,
        "private": repository.private,
        "gated": False,
        "disabled": False,
        "tags": [],
        "downloads": 0,
        "likes": 0,
        "lastModified": log[0].at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "createdAt": log[-1].at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    }
    asked = call.request.query.getall("expand", [])
    if asked:
        info = {name: value for name, value in info.items() if name in asked}
    if not asked or "siblings" in asked:
        with_blobs = call.request.query.get("blobs") in ("true", "True", "1")
        info["siblings"] = _siblings(repository.history.snapshot(head), with_blobs=with_blobs)
    return web.json_response({"_id": head[:24], "id": repository.repo_id} | info)


async def auth_check(call: Call) -> web.Response:
    """200 when the caller may read."""
    call.readable()
    return web.json_response({})


async def auth_check_write(call: Call) -> web.Response:
    """200 when the caller may write."""
    call.writable()
    return web.json_response({})


async def refs(call: Call) -> web.Response:
    """Branches and the commits they stand at."""
    repository = call.readable()
    branches = [
        {"name": name, "ref": f"refs/heads/{name}", "targetCommit": oid}
        for name, oid in repository.history.branches.items()
    ]
    return web.json_response({"branches": branches, "converts": [], "tags": [], "pullRequests": []})


async def create_branch(call: Call) -> web.Response:
    """A new branch at `startingPoint` (main)."""
    repository = call.writable()
    body = await call.json() if call.request.can_read_body else {}
    branch = call.parts["branch"]
    if branch in repository.history.branches:
        raise refusals.HubRefusedError(409, f"Reference already exists: refs/heads/{branch}")
    repository.history.create_branch(branch, repository.history.resolve(body.get("startingPoint") or "main"))
    return web.json_response({})


async def delete_branch(call: Call) -> web.Response:
    """Remove a branch; its commits stay readable by id."""
    repository = call.writable()
    branch = call.parts["branch"]
    if branch == "main":
        raise refusals.HubRefusedError(403, "Cannot delete the main branch")
    if branch not in repository.history.branches:
        raise refusals.revision_not_found(branch)
    repository.history.delete_branch(branch)
    return web.json_response({})


def _siblings(snapshot: Snapshot, *, with_blobs: bool) -> list[dict[str, object]]:
    siblings = []
    for path, entry in sorted(snapshot.items()):
        sibling: dict[str, object] = {"rfilename": path}
        if with_blobs:
            sibling |= {"size": entry.size, "blobId": entry.oid}
            if entry.sha256:
                pointer = lfs_pointer(entry.sha256, entry.size)
                sibling["lfs"] = {"sha256": entry.sha256, "size": entry.size, "pointerSize": len(pointer)}
        siblings.append(sibling)
    return siblings
