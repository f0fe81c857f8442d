"""What a Deployment does for the operator: whenever its process ends, a new one is started."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

import kubernetes
import urllib3

from gpupod_rehearsal.demo.processes import Child
from gpupod_rehearsal.demo.stage import Stage


class Deployment:
    """`async with Deployment(stage) as deployment:`; inside, a process that ends is followed by another.

    As under a kubelet the new one may start while the API server is away; then it ends, and the next one is started.
    """

    def __init__(self, stage: Stage) -> None:
        self.exits: list[int] = []
        """Exit codes of the processes that ended by themselves, in order."""
        self._stage = stage
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow(), name="deployment")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        ended = (await asyncio.gather(self._task, return_exceptions=True))[0]
        if isinstance(ended, Exception):
            raise ended

    async def _follow(self) -> None:
        child = self._stage.operator
        assert child is not None
        while True:
            self.exits.append(await child.wait())
            child = await self._start()

    async def _start(self) -> Child:
        while True:
            try:
                return await self._stage.start_operator()
            except (urllib3.exceptions.HTTPError, kubernetes.client.ApiException):
                # no token to start with while the API server is away; a kubelet tries again, too
                await asyncio.sleep(0.2)


async def ended(child: Child, within: float = 60) -> int:
    """The exit code of a process that ends by itself."""
    return await asyncio.wait_for(child.wait(), within)
