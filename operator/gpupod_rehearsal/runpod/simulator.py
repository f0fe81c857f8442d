"""The simulated vendor in one object: the model, its hosts and the HTTP server, for tests and for the rehearsal."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self

from aiohttp import web

from gpupod_rehearsal.hosts.null import NullHost
from gpupod_rehearsal.hosts.protocol import PodHost
from gpupod_rehearsal.runpod.clock import Clock, SystemClock, VirtualClock
from gpupod_rehearsal.runpod.cloud import Blueprint, Cloud
from gpupod_rehearsal.runpod.contract import Profile
from gpupod_rehearsal.runpod.driver import HostDriver
from gpupod_rehearsal.runpod.faults import FaultBook
from gpupod_rehearsal.runpod.http.app import build_app
from gpupod_rehearsal.runpod.http.journal import Journal
from gpupod_rehearsal.runpod.ratelimit import DEFAULT_QUOTAS, Quota
from gpupod_rehearsal.runpod.world import Account, default_accounts

_TICK = 0.1


class RunPodSimulator:
    """An async context manager that serves a simulated RunPod on a loopback port.

    With a VirtualClock nothing moves but by `advance` (or by the clock, at the next request). With any other clock a
    background task steps the model every tenth of a second.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        hosts: PodHost | None = None,
        blueprint: Blueprint | None = None,
        profile: Profile = Profile.NOVEMBER,
        quotas: dict[str, int] | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        plan = blueprint or Blueprint()
        if not plan.accounts:
            plan.accounts = default_accounts()
        self.cloud = Cloud(self.clock, plan)
        self.hosts: PodHost = hosts or NullHost()
        self.profile = profile
        self.journal = Journal()
        self.changed = asyncio.Event()
        self.driver = HostDriver(self.cloud, self.hosts, self.notify)
        self._quotas: dict[str, Quota] = {}
        self._quota_plan = quotas
        self._host, self._port = host, port
        self._lock = asyncio.Lock()
        self._stack = contextlib.AsyncExitStack()
        self.url = ""
        self.closing = False

    @property
    def faults(self) -> FaultBook:
        """The book of faults."""
        return self.cloud.faults

    def key(self, alias: str = "main") -> str:
        """The secret of a key, by its alias."""
        for account in self.cloud.accounts.values():
            for key in account.keys:
                if key.alias == alias:
                    return key.secret
        raise KeyError(alias)

    def quota(self, account: Account) -> Quota:
        """The request quota of an account; enforced only when the simulator was given quotas."""
        if account.id not in self._quotas:
            plan = dict(self._quota_plan or DEFAULT_QUOTAS)
            self._quotas[account.id] = Quota(plan, enforced=self._quota_plan is not None)
        return self._quotas[account.id]

    async def advance(self, seconds: float) -> None:
        """Move a VirtualClock and let everything happen that comes due, each at its own instant."""
        if not isinstance(self.clock, VirtualClock):
            raise TypeError("only a virtual clock can be advanced")
        self.clock.advance(seconds)
        await self.catch_up()

    async def catch_up(self) -> None:
        """Bring the model to the clock's present and carry out what it orders."""
        async with self._lock:
            target = self.clock()
            while self.cloud.step_once(target):
                await self.driver.settle()
            await self.driver.settle()
        self.notify()

    def notify(self) -> None:
        """Wake everybody who waits for the world to change."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        runner = web.AppRunner(build_app(self), shutdown_timeout=1.0, handle_signals=False)
        await runner.setup()
        self._stack.push_async_callback(self.hosts.close)
        self._stack.push_async_callback(self.driver.close)
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, self._host, self._port)
        await site.start()
        self.url = f"http://{self._host}:{runner.addresses[0][1]}"
        if not isinstance(self.clock, VirtualClock):
            ticker = asyncio.create_task(self._tick())
            self._stack.push_async_callback(_cancel, ticker)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing = True
        self.notify()
        await self._stack.aclose()

    async def _tick(self) -> None:
        while True:
            await self.catch_up()
            await asyncio.sleep(_TICK)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
