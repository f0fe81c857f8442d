"""The accounts that our keys belong to: who is behind a key, and what the keys of one account share."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

import aiohttp

from gpupod_operator.core.provider import AccountIdentity, Failure, ProviderPod
from gpupod_operator.ports import Clock, ProviderError
from gpupod_operator.runpod.client import RunPodClient
from gpupod_operator.runpod.governor import Governor
from gpupod_operator.runpod.keys import ApiKey, KeySource
from gpupod_operator.runpod.observer import AccountObserver
from gpupod_operator.runpod.requests import RUNPOD, CallObserver, runpod_session

# A key without the scope may be given it later; until then its fingerprint stands in.
UNVERIFIED_FOR = timedelta(minutes=10)
# A refused key is asked about again after this: every object that names it would ask at each of its passes.
REFUSED_FOR = timedelta(seconds=30)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Account:
    """One key and the account behind it.

    `provider` is bound to exactly this key, so what was proven of the key holds for each of its calls, also while the
    file or Secret that it came from is being replaced. `observer` and `governor` are shared by the account's keys.
    """

    identity: AccountIdentity
    provider: RunPodClient
    observer: AccountObserver
    governor: Governor


@dataclass(slots=True)
class _Shared:
    governor: Governor
    readers: _Readers
    observer: AccountObserver


@dataclass(slots=True)
class _Entry:
    """What is known of a key. `until` is when to ask again, None: never."""

    account: Account | None = None
    refusal: ProviderError | None = None
    until: datetime | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Accounts:
    """Opens keys. Observers are made here and run by the caller (`account.observer.run`).

    `permit` is asked right before each mutating request is sent: False, and nothing is sent.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        base_url: str = RUNPOD,
        observe_every: float = 15.0,
        on_call: CallObserver | None = None,
        jitter: Callable[[], float] = random.random,
        page_limit: int | None = None,
        permit: Callable[[], bool] = lambda: True,
    ) -> None:
        self._permit = permit
        self._clock = clock
        self._base_url = base_url
        self._observe_every = observe_every
        self._on_call = on_call
        self._jitter = jitter
        self._page_limit = page_limit
        self._session: aiohttp.ClientSession | None = None
        self._entries: dict[str, _Entry] = {}
        self._shared: dict[str, _Shared] = {}

    async def open(self, key: KeySource) -> Account:
        """The account behind the key as it is now; a key is asked about once, so this is cheap at every pass.

        A key without `account:read` (or a RunPod older than the route) gives an identity that is not verified: its
        fingerprint stands in for the id.

        Raises:
            ProviderError: UNAUTHORIZED for a key that RunPod refuses or that is none; else why it cannot be told now.
        """
        current = key.current()
        entry = self._entries.setdefault(current.fingerprint, _Entry())
        async with entry.lock:
            if entry.until is not None and self._clock.now() >= entry.until:
                entry.refusal = entry.until = None
                entry.account = await self._ask_again(current, entry)
            if entry.refusal is not None:
                raise _again(entry.refusal)
            if entry.account is None:
                entry.account = await self._identify(current, entry)
            return entry.account

    def known(self) -> tuple[Account, ...]:
        """One entry per key that was opened and is not refused."""
        return tuple(entry.account for entry in self._entries.values() if entry.account is not None)

    async def close(self) -> None:
        """End the lists under way and the connections."""
        for shared in self._shared.values():
            await shared.observer.close()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask_again(self, key: ApiKey, entry: _Entry) -> Account | None:
        """A key that had no say on its account may have one now; a failure to ask takes nothing from it."""
        if entry.account is None:
            return None
        try:
            return await self._identify(key, entry)
        except ProviderError as error:
            if error.failure is Failure.UNAUTHORIZED:
                return None
            entry.until = self._clock.now() + UNVERIFIED_FOR
            return entry.account

    async def _identify(self, key: ApiKey, entry: _Entry) -> Account:
        # Another key of the same account may have a governor already; which one is known only after this call.
        governor = Governor()
        try:
            identity = await self._client(key, governor).account()
        except ProviderError as error:
            if error.failure is Failure.UNAUTHORIZED:
                entry.refusal, entry.until = error, self._clock.now() + REFUSED_FOR
            raise
        shared = self._shared.get(identity.id)
        if shared is None:
            shared = self._shared[identity.id] = self._share(identity, governor)
        client = self._client(key, shared.governor)
        shared.readers.prefer(key.fingerprint, client)
        if not identity.verified:
            entry.until = self._clock.now() + UNVERIFIED_FOR
        return Account(identity, client, shared.observer, shared.governor)

    def _share(self, identity: AccountIdentity, governor: Governor) -> _Shared:
        readers = _Readers(self._forget)
        observer = AccountObserver(readers, identity, self._clock, interval=self._observe_every, jitter=self._jitter)
        return _Shared(governor, readers, observer)

    def _client(self, key: ApiKey, governor: Governor) -> RunPodClient:
        if self._session is None:
            self._session = runpod_session(self._base_url)
        return RunPodClient(
            self._session,
            KeySource.of(key),
            governor,
            base_url=self._base_url,
            on_call=self._on_call,
            page_limit=self._page_limit,
            permit=self._permit,
        )

    def _forget(self, fingerprint: str) -> None:
        """RunPod refused the key: whoever opens it again is told by RunPod and not by us."""
        self._entries.pop(fingerprint, None)


class _Readers:
    """Reads with the account's newest key; one that RunPod refuses gives way to the next, so that rotation is quiet."""

    def __init__(self, refused: Callable[[str], None]) -> None:
        self._clients: dict[str, RunPodClient] = {}
        self._refused = refused

    def prefer(self, fingerprint: str, client: RunPodClient) -> None:
        self._clients.pop(fingerprint, None)
        self._clients[fingerprint] = client

    async def account(self) -> AccountIdentity:
        return await self._first(lambda client: client.account())

    async def list_pods(self) -> tuple[ProviderPod, ...]:
        return await self._first(lambda client: client.list_pods())

    async def get_pod(self, pod_id: str) -> ProviderPod:
        return await self._first(lambda client: client.get_pod(pod_id))

    async def _first(self, ask: Callable[[RunPodClient], Awaitable[_T]]) -> _T:
        newest_first = list(reversed(self._clients.items()))
        for position, (fingerprint, client) in enumerate(newest_first):
            try:
                return await ask(client)
            except ProviderError as error:
                if error.failure is not Failure.UNAUTHORIZED:
                    raise
                self._refused(fingerprint)
                if position == len(newest_first) - 1:
                    # The last key is kept: it may be that RunPod errs, and then it must see the account again.
                    raise
                self._clients.pop(fingerprint, None)
        raise ProviderError(Failure.UNAUTHORIZED, "no key of this account is open")


def _again(error: ProviderError) -> ProviderError:
    """A new exception of the same words: one that is raised twice collects the tracebacks of both."""
    return ProviderError(
        error.failure,
        error.detail,
        status=error.status,
        errors=error.errors,
        request_id=error.request_id,
        retry_after=error.retry_after,
    )
