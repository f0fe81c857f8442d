"""The only writer of the ConfigMaps `pods-conf`: coalesced, compared first, never in anybody's way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpupod_operator.api.names import FIELD_MANAGER
from gpupod_operator.cluster.patience import Patience
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable, Cluster

MANAGED_BY = "app.kubernetes.io/managed-by"
LABELS: Mapping[str, str] = {MANAGED_BY: FIELD_MANAGER, "app.kubernetes.io/name": "pods-conf"}

_log = logging.getLogger(__name__)

Maps = Mapping[str, Mapping[str, str]]
"""ConfigMap name to its data: the stem, and `<stem>-1`, `<stem>-2`... for further shards."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """How writing a namespace goes. `problem` None: what is rendered is what the cluster holds, or soon will."""

    problem: str | None = None


class PodsConfWriter:
    """Brings the ConfigMaps of a namespace in line with `rendered(namespace)`, one namespace at a time.

    `rendered` returns the ConfigMaps of now, made from committed status. An empty mapping means that no pod is shown:
    the maps are deleted. None means that not all objects of the namespace were seen yet: nothing is touched.
    `on_result(namespace, result)` is called when the result of a namespace changes, so that conditions follow. What the
    API server could not do now is repeated soon and a result only when it goes on (`Patience`).
    """

    def __init__(
        self,
        cluster: Cluster,
        rendered: Callable[[str], Maps | None],
        *,
        stem: str = "pods-conf",
        on_result: Callable[[str, WriteResult], None] = lambda *_: None,
        settle: float = 0.5,
        recheck_every: float = 60.0,
    ) -> None:
        self._cluster = cluster
        self._rendered = rendered
        self._stem = stem
        self._on_result = on_result
        self._settle = settle
        self._recheck_every = recheck_every
        self._dirty: set[str] = set()
        self._wake = asyncio.Event()
        self._results: dict[str, WriteResult] = {}
        self._looked_after: set[str] = set()
        self._patience = Patience()

    def mark(self, namespace: str) -> None:
        """The committed status of a pod in the namespace changed. O(1); many marks make one write."""
        self._dirty.add(namespace)
        self._wake.set()

    def result(self, namespace: str) -> WriteResult | None:
        """As last told to `on_result`; None before the first."""
        return self._results.get(namespace)

    async def run(self, stop: asyncio.Event) -> None:
        """Write marked namespaces until `stop`; every `recheck_every` seconds look at all of them again.

        A mark is answered after `settle` seconds, so that a fleet that becomes Ready makes a few writes and not a
        thousand. The second look restores what was edited by hand; it writes only a difference.
        """
        stopping = asyncio.ensure_future(stop.wait())
        recheck = _now() + self._recheck_every
        try:
            while not stop.is_set():
                waking = asyncio.ensure_future(self._wake.wait())
                due = min([recheck, *(at for n in self._dirty if (at := self._patience.again(n)) is not None)])
                done, _ = await asyncio.wait(
                    {stopping, waking}, timeout=max(due - _now(), 0), return_when=asyncio.FIRST_COMPLETED
                )
                waking.cancel()
                if done:
                    await asyncio.wait({stopping}, timeout=self._settle)
                self._wake.clear()
                if _now() >= recheck:
                    self._dirty |= self._looked_after
                    recheck = _now() + self._recheck_every
                if not stop.is_set():
                    await self._flush_all({n for n in self._dirty if (self._patience.again(n) or 0) <= _now()})
        finally:
            stopping.cancel()

    async def flush(self) -> None:
        """Bring every marked namespace in line now. Failures never end up in the caller."""
        await self._flush_all(set(self._dirty))

    async def _flush_all(self, namespaces: set[str]) -> None:
        self._dirty -= namespaces
        for namespace in sorted(namespaces):
            await self._flush(namespace)

    async def _flush(self, namespace: str) -> None:
        try:
            maps = self._rendered(namespace)
        except ValueError as error:
            # an object that this version cannot read: its namespace keeps what it has, the others go on
            self._looked_after.add(namespace)
            self._say(namespace, f"an object of this namespace cannot be read by this version: {error}")
            return
        if maps is None:
            self._looked_after.add(namespace)
            return
        # with nothing published and nothing left behind there is nothing to look after
        (self._looked_after.add if maps else self._looked_after.discard)(namespace)
        try:
            self._say(namespace, await self._bring_in_line(namespace, maps))
        except ApiInvalid as error:  # the same bytes will be refused again
            self._say(namespace, self._unwritten(error))
        except (ApiConflict, ApiForbidden, ApiNotFound, ApiUnavailable) as error:
            self._failed(namespace, error)

    def _failed(self, namespace: str, error: Exception) -> None:
        lasts = self._patience.failed(namespace, error, _now())
        if lasts and isinstance(error, ApiNotFound):
            self._looked_after.discard(namespace)
            self._say(namespace, f"namespace {namespace} is gone")
            return
        self._dirty.add(namespace)
        if lasts:
            self._tell(namespace, WriteResult(self._unwritten(error)))
        else:
            _log.info("pods.conf of namespace %s, tried again: %s", namespace, error)

    def _unwritten(self, error: Exception) -> str:
        return f"ConfigMap {self._stem} could not be written: {error}"

    def _say(self, namespace: str, problem: str | None) -> None:
        """What is so, as opposed to what could not be done now."""
        self._patience.ended(namespace)
        self._tell(namespace, WriteResult(problem))

    def _tell(self, namespace: str, result: WriteResult) -> None:
        if self._results.get(namespace) == result:
            return
        if result.problem is not None:
            _log.warning("pods.conf of namespace %s: %s", namespace, result.problem)
        self._results[namespace] = result
        self._on_result(namespace, result)

    async def _bring_in_line(self, namespace: str, maps: Maps) -> str | None:
        for name, data in maps.items():
            live = await self._cluster.read_config(namespace, name)
            if live is not None and not _ours(live):
                return (
                    f"ConfigMap {name} exists and is not the operator's; delete it, or label it "
                    f"{MANAGED_BY}={FIELD_MANAGER} to hand it over"
                )
            if live is None or not _same(live, data):
                await self._cluster.apply_config(namespace, name, data, labels=LABELS)
        await self._delete_shards_from(namespace, len(maps))
        return None

    async def _delete_shards_from(self, namespace: str, count: int) -> None:
        surplus: list[str] = []
        while True:
            number = count + len(surplus)
            name = self._stem if number == 0 else f"{self._stem}-{number}"
            live = await self._cluster.read_config(namespace, name)
            if live is None or not _ours(live):
                break
            surplus.append(name)
        # the last one first, so that a break half way leaves no hole in the numbers
        for name in reversed(surplus):
            await self._cluster.delete_config(namespace, name)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _ours(live: Mapping[str, Any]) -> bool:
    """By its label, or, should somebody have removed that by hand, because a field in it is still of our applying."""
    metadata = live["metadata"]
    if (metadata.get("labels") or {}).get(MANAGED_BY) == FIELD_MANAGER:
        return True
    managers = metadata.get("managedFields") or []
    return any(m.get("manager") == FIELD_MANAGER and m.get("operation") == "Apply" for m in managers)


def _same(live: Mapping[str, Any], data: Mapping[str, str]) -> bool:
    labels = live["metadata"].get("labels") or {}
    return (
        (live.get("data") or {}) == dict(data)
        and not live.get("binaryData")
        and all(labels.get(key) == value for key, value in LABELS.items())
    )
