"""`/_hub/...`: the view a test has of the simulated Hub. It needs no token and is no part of the Hub's API."""

from __future__ import annotations

import hashlib
from typing import Any

from aiohttp import web

from gpupod_rehearsal.hub.faults import FAULTS, Fault
from gpupod_rehearsal.hub.registry import Repository, RepositoryExistsError
from gpupod_rehearsal.hub.routes import OPERATIONS
from gpupod_rehearsal.hub.state import HubState


class ControlApi:
    """Handlers of the control routes; `register` puts them into an application."""

    def __init__(self, state: HubState) -> None:
        self._state = state

    def register(self, app: web.Application) -> None:
        repo = "/_hub/repos/{kind:models|datasets|spaces}/{namespace}/{name}"
        app.router.add_get("/_hub/repos", self.list_repos)
        app.router.add_post("/_hub/repos", self.create_repo)
        app.router.add_get(f"{repo}/tree", self.tree)
        app.router.add_get(f"{repo}/commits", self.commits)
        app.router.add_get(f"{repo}/file", self.file)
        app.router.add_get("/_hub/requests", self.list_requests)
        app.router.add_delete("/_hub/requests", self.clear_requests)
        app.router.add_get("/_hub/faults", self.list_faults)
        app.router.add_post("/_hub/faults", self.arm_fault)
        app.router.add_delete("/_hub/faults", self.clear_faults)

    async def list_repos(self, _request: web.Request) -> web.Response:
        return web.json_response(
            [
                {"kind": repo.kind, "id": repo.repo_id, "private": repo.private, "branches": repo.history.branches}
                for repo in self._state.registry
            ]
        )

    async def create_repo(self, request: web.Request) -> web.Response:
        """Body `{"kind", "id", "private"}`; 200 also when it exists."""
        body = await request.json()
        kind, repo_id = body.get("kind", "dataset"), body["id"]
        try:
            self._state.registry.create(
                kind,
                repo_id,
                private=bool(body.get("private")),
                author=repo_id.partition("/")[0],
                at=self._state.clock.now(),
            )
        except RepositoryExistsError:
            return web.json_response({"created": False})
        except ValueError as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        return web.json_response({"created": True})

    async def tree(self, request: web.Request) -> web.Response:
        """Every file of `?revision=` (main) with the sha256 of the bytes that are really stored."""
        repository = self._repository(request)
        head = repository.history.resolve(request.query.get("revision", "main"))
        files = []
        for path, entry in sorted(repository.history.snapshot(head).items()):
            sha256 = hashlib.sha256(self._state.blobs.read(entry)).hexdigest()
            lfs = entry.sha256 is not None
            files.append({"path": path, "size": entry.size, "oid": entry.oid, "lfs": lfs, "sha256": sha256})
        return web.json_response({"head": head, "files": files})

    async def commits(self, request: web.Request) -> web.Response:
        """The commits of `?revision=` (main), newest first, with what each changed."""
        repository = self._repository(request)
        head = repository.history.resolve(request.query.get("revision", "main"))
        items: list[dict[str, Any]] = [
            {
                "oid": commit.oid,
                "title": commit.title,
                "description": commit.description,
                "author": commit.author,
                "at": commit.at.isoformat(),
                "files": sorted(commit.changed),
                "deleted": list(commit.deleted),
            }
            for commit in repository.history.log(head)
        ]
        return web.json_response(items)

    async def file(self, request: web.Request) -> web.Response:
        """The stored bytes of `?path=` at `?revision=` (main)."""
        repository = self._repository(request)
        head = repository.history.resolve(request.query.get("revision", "main"))
        entry = repository.history.snapshot(head).get(request.query.get("path", ""))
        if entry is None:
            raise web.HTTPNotFound(text="no such file")
        return web.Response(body=self._state.blobs.read(entry))

    async def list_requests(self, _request: web.Request) -> web.Response:
        return web.json_response([entry.to_json() for entry in self._state.requests])

    async def clear_requests(self, _request: web.Request) -> web.Response:
        self._state.requests.clear()
        return web.json_response({})

    async def list_faults(self, _request: web.Request) -> web.Response:
        armed = [fault.to_json() for fault in self._state.faults.armed]
        return web.json_response({"known": dict(FAULTS), "operations": sorted(OPERATIONS), "armed": armed})

    async def arm_fault(self, request: web.Request) -> web.Response:
        """Body: the fields of `Fault`."""
        try:
            fault = self._state.faults.arm(Fault(**await request.json()))
        except (TypeError, ValueError) as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        return web.json_response(fault.to_json())

    async def clear_faults(self, _request: web.Request) -> web.Response:
        self._state.faults.clear()
        return web.json_response({})

    def _repository(self, request: web.Request) -> Repository:
        parts = request.match_info
        repository = self._state.registry.find(parts["kind"].removesuffix("s"), f"{parts['namespace']}/{parts['name']}")
        if repository is None:
            raise web.HTTPNotFound(text="no such repository")
        return repository
