"""One request on its way through the Hub: what it asks for, by whom, and the checks every route shares."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gpupod_rehearsal.hub import refusals
from gpupod_rehearsal.hub.accounts import HubToken
from gpupod_rehearsal.hub.faults import Fault
from gpupod_rehearsal.hub.registry import Repository
from gpupod_rehearsal.hub.state import HubState


@dataclass
class Call:
    """A routed request. `parts` are the decoded pieces of its path; `kind` is singular (dataset)."""

    state: HubState
    request: web.Request
    operation: str
    parts: dict[str, str]
    token: HubToken | None = None
    fault: Fault | None = None

    @property
    def kind(self) -> str:
        return self.parts.get("kind", "models").removesuffix("s")

    @property
    def repo_id(self) -> str | None:
        namespace, name = self.parts.get("namespace"), self.parts.get("name")
        return f"{namespace}/{name}" if namespace and name else None

    @property
    def user(self) -> HubToken:
        """Who asks.

        Raises:
            HubRefusedError: 401, no token was sent.
        """
        if self.token is None:
            raise refusals.token_needed()
        return self.token

    def readable(self) -> Repository:
        """The repository, if the caller may see it.

        Raises:
            HubRefusedError: 404 (or 401 without a token), missing and hidden alike.
        """
        repository = self.state.registry.find(self.kind, self.repo_id or "")
        if repository is None or not self.state.accounts.can_read(
            self.token, repository.namespace, private=repository.private
        ):
            raise refusals.repository_hidden(anonymous=self.token is None)
        return repository

    def writable(self) -> Repository:
        """The repository, if the caller may write to it.

        Raises:
            HubRefusedError: as `readable`; 401 without a token; 403 with a read token or no right.
        """
        repository = self.readable()
        if not self.state.accounts.can_write(self.user, repository.namespace):
            raise refusals.write_forbidden()
        return repository

    def revision(self, repository: Repository) -> str:
        """The commit the revision stands for; the one before it while the fault `lagging_revision` strikes."""
        requested = self.parts.get("revision", "main")
        oid = repository.history.resolve(requested)
        lagging = self.fault is not None and self.fault.name == "lagging_revision"
        if lagging and requested in repository.history.branches:
            return repository.history.commits[oid].parent or oid
        return oid

    async def json(self) -> Any:
        """The JSON body.

        Raises:
            HubRefusedError: 400, it is not JSON.
        """
        try:
            return json.loads(await self.request.read())
        except ValueError as error:
            raise refusals.bad_request("Invalid JSON") from error
