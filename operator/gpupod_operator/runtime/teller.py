"""Events go out behind everything else: what a loop decides and does never waits for words about it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any

from gpupod_operator.api.names import GROUP, VERSION
from gpupod_operator.core.plan import Transition
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable, Cluster
from gpupod_operator.runtime.metrics import Metrics

log = logging.getLogger("gpupod_operator.decisions")

WAITING = 10_000
"""Events that may wait, about 1 KB each; with more the oldest are given up."""
LAST_WORDS = 2.0
"""Seconds for what still waits when the process ends."""


class Teller:
    """One event at a time, in the order in which they were told. Where one cannot be written the log line stands in."""

    def __init__(self, cluster: Cluster, metrics: Metrics) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._waiting: deque[tuple[dict[str, Any], str, Transition]] = deque()
        self._told = asyncio.Event()

    def tell(self, raw: Mapping[str, Any], kind: str, transition: Transition) -> None:
        """Say it soon. O(1)."""
        about = {"apiVersion": f"{GROUP}/{VERSION}", "metadata": _identity(raw["metadata"])}
        self._waiting.append((about, kind, transition))
        if len(self._waiting) > WAITING:
            self._unwritten(*self._waiting.popleft(), "too many events wait")
        self._told.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            while self._waiting:
                item = self._waiting.popleft()
                try:
                    await self._post(*item)
                except asyncio.CancelledError:
                    self._waiting.appendleft(item)  # for `finish`
                    raise
            self._told.clear()
            await self._told.wait()

    async def finish(self) -> None:
        """Say what still waits, for as long as LAST_WORDS; `run` has ended before."""
        try:
            async with asyncio.timeout(LAST_WORDS):
                while self._waiting:
                    await self._post(*self._waiting.popleft())
        except TimeoutError:
            while self._waiting:
                self._unwritten(*self._waiting.popleft(), "the process ends")

    async def _post(self, about: dict[str, Any], kind: str, item: Transition) -> None:
        try:
            await self._cluster.emit(
                about, kind=kind, reason=item.reason, message=item.message, warning=item.warning, action="Reconcile"
            )
            self._metrics.kube_writes.labels("event").inc()
        except (ApiForbidden, ApiNotFound, ApiUnavailable, ApiInvalid, ApiConflict) as error:
            self._unwritten(about, kind, item, str(error))

    def _unwritten(self, about: dict[str, Any], _kind: str, item: Transition, why: str) -> None:
        self._metrics.events_lost.inc()
        name = f"{about['metadata']['namespace']}/{about['metadata']['name']}"
        log.warning(
            "%s (the event could not be written: %s)",
            item.message,
            why,
            extra={"object": name, "reason": item.reason},
        )


def _identity(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: metadata.get(name) for name in ("namespace", "name", "uid", "resourceVersion")}
