"""A thousand GpuPods: applied by a person's client, watched until each says Ready."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import aiohttp

from bench.stage import API, GPU
from clusterkit.admin import Admin, Refused

AT_ONCE = 16
"""Applies in flight, about what `kubectl apply -f` of a folder and its retries keep up with."""

Key = tuple[str, str]

IMAGE = "runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04"


def gpupod(name: str) -> dict[str, Any]:
    """One GPU, ready as soon as the provider shows the port mapping: nothing is visited, nothing runs on it."""
    return {
        "apiVersion": API,
        "kind": "GpuPod",
        "metadata": {"name": name},
        "spec": {
            "placement": {"candidates": [{"gpuType": GPU, "maxPricePerHour": "9.00"}]},
            "container": {"image": IMAGE, "ports": ["22/tcp"]},
            "health": {"readiness": "Mapping"},
        },
    }


async def apply_all(admin: Admin, keys: Sequence[Key]) -> dict[Key, float]:
    """Create them all; the wall-clock time (seconds since 1970) just before each request."""
    turns = asyncio.Semaphore(AT_ONCE)
    applied: dict[Key, float] = {}

    async def one(key: Key) -> None:
        async with turns:
            applied[key] = time.time()
            await admin.create(gpupod(key[1]), namespace=key[0])

    await asyncio.gather(*(one(key) for key in keys))
    return applied


class Watch:
    """The fleet as the API server shows it. Times are seconds since 1970."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._changed = asyncio.Event()
        self.ready: dict[Key, float] = {}
        """When each object was first seen Ready."""
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})

    async def until_ready(self, keys: Sequence[Key], timeout: float, alive: Callable[[], None]) -> None:
        """Raises TimeoutError, which names how many are missing, and what `alive` raises, asked every second."""
        assert self._task is not None
        try:
            async with asyncio.timeout(timeout):
                while missing := [k for k in keys if k not in self.ready]:
                    self._changed.clear()
                    waiting = asyncio.ensure_future(self._changed.wait())
                    await asyncio.wait({waiting, self._task}, timeout=1, return_when=asyncio.FIRST_COMPLETED)
                    waiting.cancel()
                    alive()
                    if self._task.done():
                        self._task.result()
        except TimeoutError:
            raise TimeoutError(f"{len(missing)} of {len(keys)} are not Ready after {timeout:.0f} s") from None

    async def _follow(self) -> None:
        while True:
            # The API server ends the watch of a reader that falls behind; whatever was missed is in the next list.
            for found in await self._admin.list("GpuPod"):
                self._see(found)
            try:
                async for event in self._admin.watch("GpuPod"):
                    self._see(event["object"])
            except (Refused, aiohttp.ClientError):
                continue

    def _see(self, found: dict[str, Any]) -> None:
        key = (found["metadata"]["namespace"], found["metadata"]["name"])
        if key not in self.ready and _ready(found):
            self.ready[key] = time.time()
            self._changed.set()


def _ready(found: dict[str, Any]) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
