"""What has to outlive an object: ids that it released, nonces of creates whose outcome was never known, pods in use.

One ConfigMap per account in the operator namespace. It is written when a finalizer goes and there is something to keep
and, only since orphans were first to be reaped there, before a status says that a pod came into use.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from gpupod_operator.api.gpupod_status import Attempt, AttemptIntent, GpuPodStatus
from gpupod_operator.api.times import format_time, parse_time
from gpupod_operator.ports import Cluster

KEY = "fleet.json"
LABELS = {"app.kubernetes.io/managed-by": "gpupod-operator", "app.kubernetes.io/component": "fleet-state"}
USED_DAYS = 2
"""A pod that came into use longer ago and is not on the list has ended.

Five thousand pods a day are 0.4 MB, and a ConfigMap holds 1 MiB.
"""
NONCE_DAYS = 7
"""A create that lands later than this has never been seen; the vendor's own requests end after a minute."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """`released`: pod ids given up by Orphan or Stop, never leaks. `nonces`: nonce to (uid, when it was retired).

    `used`: pod ids that were Ready or otherwise in use, complete for pods made after `reaping_since`, and when.
    """

    released: frozenset[str] = frozenset()
    nonces: Mapping[str, tuple[str, datetime]] = field(default_factory=dict)
    used: Mapping[str, datetime] = field(default_factory=dict)
    reaping_since: datetime | None = None


def parse(text: str | None) -> Fleet:
    """From the ConfigMap's text; nothing at all without one. Raises ValueError for what we did not write."""
    if not text:
        return Fleet()
    data = json.loads(text)
    nonces = {n["nonce"]: (str(n["uid"]), parse_time(n["at"])) for n in data.get("nonces", [])}
    since = data.get("reapingSince")
    return Fleet(
        frozenset(str(i) for i in data.get("released", [])),
        nonces,
        {str(pod): parse_time(at) for pod, at in data.get("used", {}).items()},
        parse_time(since) if since is not None else None,
    )


def remember(fleet: Fleet, uid: str, status: GpuPodStatus, now: datetime) -> Fleet:
    """With what this object leaves behind, and without nonces that are too old to matter."""
    open_nonces = _open_nonces(status.attempt) if status.attempt is not None else ()
    kept = {n: v for n, v in fleet.nonces.items() if now - v[1] < timedelta(days=NONCE_DAYS)}
    return replace(
        fleet,
        released=fleet.released | frozenset(status.released or ()),
        nonces=kept | dict.fromkeys(open_nonces, (uid, now)),
    )


def with_used(fleet: Fleet, pod_ids: Iterable[str], now: datetime, listed: Container[str]) -> Fleet:
    """With these pods in use, and without those that have been off the account's list for long enough.

    The records are complete from where they now begin: a pod that was forgotten and comes back is older than that.
    """
    oldest = now - timedelta(days=USED_DAYS)
    kept = {pod: at for pod, at in fleet.used.items() if pod in listed or at > oldest}
    since = fleet.reaping_since
    if since is not None and len(kept) < len(fleet.used):
        since = max(since, oldest)
    return replace(fleet, used=kept | dict.fromkeys(pod_ids, now), reaping_since=since)


def _open_nonces(attempt: Attempt) -> tuple[str, ...]:
    """Nonces under which a pod may still appear that nobody has recorded."""
    unsettled = attempt.unknown_since is not None or (attempt.pod_id is None and attempt.intent is AttemptIntent.CREATE)
    present = (attempt.nonce,) if unsettled and attempt.nonce is not None else ()
    return (*(attempt.retired_nonces or ()), *present)


def text_of(fleet: Fleet) -> str:
    """Deterministic, so that equal state is equal text."""
    nonces = [{"nonce": n, "uid": uid, "at": format_time(at)} for n, (uid, at) in sorted(fleet.nonces.items())]
    data: dict[str, Any] = {"released": sorted(fleet.released), "nonces": nonces}
    if fleet.reaping_since is not None:
        data["reapingSince"] = format_time(fleet.reaping_since)
        data["used"] = {pod: format_time(at) for pod, at in sorted(fleet.used.items())}
    return json.dumps(data, indent=1)


def config_name(account: str) -> str:
    """The account id may hold characters that a name may not."""
    return f"fleet-{hashlib.sha256(account.encode()).hexdigest()[:16]}"


class FleetState:
    """Read at start and written through; one process leads, so there is one writer."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._held: dict[str, Fleet] = {}
        self._writing: dict[str, asyncio.Lock] = {}
        self._coming: dict[str, set[str]] = {}

    async def of(self, account: str) -> Fleet:
        """The account's state. Raises Api errors: then nothing may be concluded from what is not in it."""
        held = self._held.get(account)
        if held is None:
            found = await self._cluster.read_config(self._namespace, config_name(account))
            held = self._held[account] = parse(((found or {}).get("data") or {}).get(KEY))
        return held

    def released(self, account: str) -> frozenset[str]:
        """Ids that objects gave up, as far as the account's state was read."""
        held = self._held.get(account)
        return held.released if held is not None else frozenset()

    async def leave(self, opened: str | None, raw: Mapping[str, Any], now: datetime) -> None:
        """Called before a finalizer goes; the finalizer stays when this raises.

        Kept under the account that the pod was created in; `opened`, the account of the object's present key, stands
        in where none is on record. With neither nothing was ever rented.
        """
        status = GpuPodStatus.model_validate(raw.get("status") or {})
        recorded = status.account.id if status.account is not None else None
        account = recorded or opened
        if account is None:
            return
        uid = str(raw["metadata"]["uid"])
        await self._change(account, lambda fleet: remember(fleet, uid, status, now))

    async def begin_reaping(self, account: str, now: datetime) -> None:
        """From here on every pod of this account that comes into use is written down first."""
        await self._change(account, lambda f: f if f.reaping_since is not None else replace(f, reaping_since=now))

    async def note_used(self, account: str, pod_id: str, now: datetime, listed: Container[str]) -> None:
        """Written before a status that says so; a no-op where nothing was ever to be reaped.

        Pods that come into use while a write is under way share the next one. Raises Api errors.
        """
        coming = self._coming.setdefault(account, set())
        coming.add(pod_id)
        try:
            fleet = await self.of(account)
        except ValueError:
            # somebody edited the map: nobody is reaped by it, and this one is written once it can be read again
            return
        if fleet.reaping_since is not None:
            await self._change(account, lambda f: f if pod_id in f.used else with_used(f, coming, now, listed))
        coming.discard(pod_id)

    async def _change(self, account: str, change: Callable[[Fleet], Fleet]) -> None:
        # one at a time: of two objects at once neither may write over what the other leaves
        async with self._writing.setdefault(account, asyncio.Lock()):
            before = await self.of(account)
            after = change(before)
            if after == before:
                return
            name = config_name(account)
            await self._cluster.apply_config(self._namespace, name, {KEY: text_of(after)}, labels=LABELS)
            self._held[account] = after
