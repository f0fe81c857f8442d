"""One list of an account's pods per tick, for all objects that live on it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from gpupod_operator.core.provider import AccountIdentity, Failure, Inventory, InventoryState, ProviderPod
from gpupod_operator.ports import Clock, ProviderError
from gpupod_operator.runpod.inventory import Change, Doubt, absorb, doubt, doubted, failed, unlisted

_log = logging.getLogger(__name__)

# Ticks of several accounts, and of operators started together, drift apart.
JITTER = 0.1
# Callers that want a fresh list at the same time share one. Without this pause a thousand creates in a row would list
# without a break and use up a minute's quota (60 calls in the vendor's example) in seconds.
LEAST_GAP = 1.0
# Witnesses asked about a suspicious loss, and how young a pod may be to be missing from a lagging list.
MOST_WITNESSES = 3
LIST_LAG = timedelta(seconds=60)

Subscriber = Callable[[frozenset[str] | None], None]
"""Called with the uids and pod ids whose pod changed; with None when everybody is concerned."""


class PodReader(Protocol):
    """What observing needs of the account."""

    async def account(self) -> AccountIdentity: ...

    async def list_pods(self) -> tuple[ProviderPod, ...]: ...

    async def get_pod(self, pod_id: str) -> ProviderPod: ...


class AccountObserver:
    """The account's pods as of the last list. `interval` and `gap` in seconds; `jitter` gives numbers in [0, 1)."""

    def __init__(
        self,
        reader: PodReader,
        identity: AccountIdentity,
        clock: Clock,
        *,
        interval: float = 15.0,
        gap: float = LEAST_GAP,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._reader = reader
        self._identity = identity
        self._clock = clock
        self._interval = interval
        self._gap = min(gap, interval)
        self._jitter = jitter
        self._inventory = unlisted(clock.now())
        self._tracked: set[str] = set()
        self._expected: set[str] = set()
        self._subscribers: list[Subscriber] = []
        self._running: asyncio.Task[Inventory] | None = None
        self._queued: asyncio.Task[Inventory] | None = None
        self._began = float("-inf")

    @property
    def inventory(self) -> Inventory:
        """The newest answer; its pods are those of the last complete list."""
        return self._inventory

    async def run(self, stop: asyncio.Event) -> None:
        """List every `interval` seconds until `stop` is set. A list that somebody asked for counts as a tick."""
        while not stop.is_set():
            await self.tick()
            wait = self._interval * (1 + JITTER * (2 * self._jitter() - 1))
            while not stop.is_set() and (left := self._began + wait - _now()) > 0:
                await _until_set(stop, max(left, 0.001))  # a clock may be coarser than a float
        await self.close()

    async def tick(self) -> Inventory:
        """List once and take the answer in. Never raises for an answer: what failed is in the inventory."""
        return await self.fresh()

    async def fresh(self) -> Inventory:
        """The inventory after a list that begins after this call; callers at the same time share one.

        Its state is UNKNOWN or SUSPECT when that list failed or is not believed. A caller that is cancelled does not
        end the list of the others.
        """
        if self._queued is None:
            self._queued = asyncio.create_task(self._list_after(self._running), name="list-pods")
        return await asyncio.shield(self._queued)

    def track(self, pod_id: str) -> None:
        """Count the complete lists without this id, whether any list ever showed it or not."""
        self._tracked.add(pod_id)

    def untrack(self, pod_id: str) -> None:
        """Nobody asks about this id any more."""
        self._tracked.discard(pod_id)

    def expect_gone(self, pod_id: str) -> None:
        """Its end was ordered: its absence makes no list suspect."""
        self._expected.add(pod_id)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call `callback`, which must not block, after each answer that changed something. Returns the way out."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    async def close(self) -> None:
        """End the lists under way."""
        tasks = [task for task in (self._running, self._queued) if task is not None and not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _list_after(self, before: asyncio.Task[Inventory] | None) -> Inventory:
        if before is not None and not before.done():
            await asyncio.wait({before})
        wait = self._began + self._gap - _now()
        if wait > 0:
            await asyncio.sleep(wait)
        # From here on a new caller needs a list of its own: this one begins now.
        self._running, self._queued = self._queued, None
        return await self._list()

    async def _list(self) -> Inventory:
        self._began, now = _now(), self._clock.now()
        # Ids that are tracked or ordered away while the list is under way are not judged by it.
        tracked, expected = frozenset(self._tracked), frozenset(self._expected)
        try:
            pods = await self._reader.list_pods()
            doubts = doubt(self._inventory, pods, tracked, expected)
            trouble = await self._unexplained(doubts) if doubts is not None else None
        except ProviderError as error:
            return self._take(*failed(self._inventory, error, now))
        except Exception as error:  # noqa: BLE001 - logged with its traceback
            # A mistake of ours is one more way not to know. Without this every object would go on with an old list.
            _log.exception("the list of account %s failed", self._identity.id)
            internal = ProviderError(Failure.UNAVAILABLE, f"internal error ({type(error).__name__})")
            return self._take(*failed(self._inventory, internal, now))
        if doubts is not None and trouble is not None:
            return self._take(*doubted(self._inventory, f"{doubts.message}: {trouble}", now))
        inventory = self._take(*absorb(self._inventory, pods, tracked, now))
        self._expected -= {pod_id for pod_id in expected if pod_id not in inventory.pods}
        return inventory

    async def _unexplained(self, doubts: Doubt) -> str | None:
        """None when the loss is real: it is the recorded account that was listed, and lost pods agree to a GET."""
        try:
            who = await self._reader.account()
            if self._identity.verified and who.verified and who.id != self._identity.id:
                return f"the key belongs to account {who.id} and not to {self._identity.id}"
            for pod_id in doubts.lost[:MOST_WITNESSES]:
                if await self._contradicts(pod_id):
                    return f"pod {pod_id} still answers"
        except ProviderError as error:
            return f"it cannot be explained now ({error.detail})"
        return None

    async def _contradicts(self, pod_id: str) -> bool:
        """Whether a pod lives that the list lacks. One so young that lists may lack it does not contradict."""
        try:
            pod = await self._reader.get_pod(pod_id)
        except ProviderError as error:
            if error.failure is Failure.NOT_FOUND:
                return False
            raise
        young = pod.created_at is not None and self._clock.now() - pod.created_at < LIST_LAG
        return pod.live and not young

    def _take(self, inventory: Inventory, change: Change) -> Inventory:
        if (inventory.state, inventory.reason) != (self._inventory.state, self._inventory.reason):
            level = logging.INFO if inventory.state is InventoryState.COMPLETE else logging.WARNING
            _log.log(level, "account %s: %s: %s", self._identity.id, inventory.reason, inventory.message)
        self._inventory = inventory
        if change.everything or change.names:
            for subscriber in tuple(self._subscribers):
                self._tell(subscriber, None if change.everything else change.names)
        return inventory

    def _tell(self, subscriber: Subscriber, names: frozenset[str] | None) -> None:
        try:
            subscriber(names)
        except Exception:  # noqa: BLE001 - logged with its traceback
            # One listener's mistake must not blind the others; it is loud in the log.
            _log.exception("a subscriber of account %s failed", self._identity.id)


async def _until_set(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return


def _now() -> float:
    return asyncio.get_running_loop().time()
