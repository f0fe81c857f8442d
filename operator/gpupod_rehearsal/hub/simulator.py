"""The simulated Hub as a server: an async context manager for tests, the same object behind the command."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from gpupod_rehearsal.hub.accounts import Accounts, HubToken, Role
from gpupod_rehearsal.hub.clock import HubClock, WallClock
from gpupod_rehearsal.hub.control import ControlApi
from gpupod_rehearsal.hub.dispatch import Dispatcher
from gpupod_rehearsal.hub.faults import Fault
from gpupod_rehearsal.hub.limits import HubLimits
from gpupod_rehearsal.hub.registry import RepositoryExistsError
from gpupod_rehearsal.hub.state import HubState, LoggedRequest
from gpupod_rehearsal.hub.view import RepositoryView

# A commit carries its regular files as base64 in one body; the Hub's stated limit is 1 GB of them.
MAX_BODY_BYTES = 2 * 1024**3
SHUTDOWN_SECONDS = 1.0


class HubSimulator:
    """A Hugging Face Hub on loopback for the unmodified `huggingface_hub` client.

    `workdir` keeps repositories and bytes over a restart; None uses a temporary folder. `port` 0 picks a free one.
    `limits` may be replaced while it runs.

    Example:
        async with HubSimulator(tokens=[HubToken("ada", secret="hf_test")]) as hub:
            hub.create_repo("ada/sweeps")
            ... HfApi(endpoint=hub.url, token="hf_test") ...
            assert hub.repo("ada/sweeps").read("cells/1/eval.json") == b"{}"
    """

    def __init__(
        self,
        *,
        tokens: Iterable[HubToken] = (),
        orgs: Mapping[str, Mapping[str, Role]] | None = None,
        workdir: Path | None = None,
        clock: HubClock | None = None,
        limits: HubLimits | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="gpupod-hub-") if workdir is None else None
        self._host = host
        self._port = port
        self.state = HubState(
            workdir=workdir or Path(self._temporary.name if self._temporary else "."),
            clock=clock or WallClock(),
            accounts=Accounts(tokens, orgs),
            limits=limits or HubLimits(),
        )
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        ControlApi(self.state).register(app)
        app.router.add_route("*", "/{path:.*}", Dispatcher(self.state).handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        host, port = self._runner.addresses[0][:2]
        self.state.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def url(self) -> str:
        """The endpoint, for `HF_ENDPOINT` or `HfApi(endpoint=...)`."""
        return self.state.url

    @property
    def limits(self) -> HubLimits:
        return self.state.limits

    @limits.setter
    def limits(self, limits: HubLimits) -> None:
        self.state.limits = limits

    @property
    def requests(self) -> tuple[LoggedRequest, ...]:
        """Every request so far, oldest first."""
        return tuple(self.state.requests)

    def create_repo(self, repo_id: str, *, kind: str = "dataset", private: bool = False) -> RepositoryView:
        """Create a repository past the API; one that exists is returned as it is."""
        try:
            self.state.registry.create(
                kind, repo_id, private=private, author=repo_id.partition("/")[0], at=self.state.clock.now()
            )
        except RepositoryExistsError:
            return self.repo(repo_id, kind=kind)
        return self.repo(repo_id, kind=kind)

    def repo(self, repo_id: str, *, kind: str = "dataset") -> RepositoryView:
        """The view of a repository; KeyError when it does not exist."""
        repository = self.state.registry.find(kind, repo_id)
        if repository is None:
            raise KeyError(f"{kind} {repo_id}")
        return RepositoryView(self.state, repository)

    def arm(
        self,
        name: str,
        operation: str = "*",
        *,
        repo: str | None = None,
        times: int | None = 1,
        skip: int = 0,
        status: int = 500,
        seconds: float = 0.0,
    ) -> Fault:
        """Arm a fault by name; see `faults.FAULTS` and `Fault`."""
        return self.state.faults.arm(Fault(name, operation, repo, times, skip, status, seconds))

    def clear_faults(self) -> None:
        self.state.faults.clear()

    def revoke_tokens(self, user: str) -> None:
        """From now on every token of `user` is answered 401."""
        self.state.accounts.revoke(user)
