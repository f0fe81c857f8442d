"""One per account: when may the next call go out?

RunPod counts every call of a user, over all keys, in several windows at once, and tells in the headers of each answer
what is left. A call waits here rather than being refused there. Stop and delete may use a share that nothing else may
touch: a fleet that watches itself to death must still be able to end its spending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from gpupod_operator.core.provider import Failure
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.calls import CallKind
from gpupod_operator.runpod.rate_limits import WindowNotice, read_windows, wait_after_refusal

# Of each window, for stop and delete: a fifth, at least 3 calls, at most what ends 300 pods (stop and delete each).
RESERVED_SHARE, LEAST_RESERVED, MOST_RESERVED = 5, 3, 600
# More calls at once help nobody and would all be under way before the first answer tells what is left.
MOST_IN_FLIGHT, MOST_IN_FLIGHT_RELEASING = 16, 24
# A reader's answer is stale after a while; everything else outlasts the minute window.
PATIENCE = {CallKind.READ: 20.0}
DEFAULT_PATIENCE = 65.0
# `t` is told in whole seconds: windows whose ends differ by less are the same window.
SAME_WINDOW = 2.0


@dataclass(slots=True)
class _Window:
    """What is known of one window. `left` is the server's count, calls still under way not in it."""

    left: int | None
    resets_at: float
    quota: int | None
    length: float | None

    def floor(self, *, releasing: bool) -> int:
        """What must stay in the window."""
        if releasing:
            return 0
        if self.quota is None:
            return LEAST_RESERVED
        share = min(max(-(-self.quota // RESERVED_SHARE), LEAST_RESERVED), MOST_RESERVED)
        # A tiny quota must not be all reserve.
        return min(share, self.quota // 2)


class Governor:
    """Admits calls. Every `admit` that returns is followed by exactly one `answered`.

    `monotonic` counts seconds, `sleep` waits for them; both default to those of the running loop.
    """

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._monotonic = monotonic or _loop_time
        self._sleep = sleep
        self._windows: dict[str, _Window] = {}
        self._closed_until = 0.0
        self._in_flight = 0
        self._waiting: set[asyncio.Future[None]] = set()
        # One head of the queue per lane looks at the windows; the others stand behind it, first come first served.
        self._lanes = {False: asyncio.Lock(), True: asyncio.Lock()}

    async def admit(self, kind: CallKind) -> None:
        """Return when a call of this kind may go out.

        Raises:
            ProviderError: THROTTLED with `retry_after` when it would wait longer than its patience. Nothing was sent.
        """
        releasing = kind is CallKind.RELEASE
        async with self._lanes[releasing]:
            patience_ends = self._monotonic() + PATIENCE.get(kind, DEFAULT_PATIENCE)
            while True:
                wait, window = self._wait(releasing=releasing)
                full = self._full(releasing=releasing)
                if wait <= 0 and not full:
                    break
                if wait > 0 and self._monotonic() + wait > patience_ends:
                    raise ProviderError(
                        Failure.THROTTLED, f"the account's request quota is used up ({window})", retry_after=wait
                    )
                await self._pause(wait if wait > 0 else None)
            self._in_flight += 1

    def answered(self, status: int | None, headers: Mapping[str, str]) -> None:
        """Take in what an answer tells; `status` None when none came."""
        self._in_flight -= 1
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        if status is None:
            return
        notices = read_windows(headers)
        if status == 429:
            self._closed_until = max(self._closed_until, self._monotonic() + wait_after_refusal(headers))
        elif not notices and status < 300:
            # An authenticated answer without the headers: this account is not limited.
            self._windows.clear()
        for name, notice in notices.items():
            self._note(name, notice)

    def left(self) -> dict[str, int]:
        """Calls left by window, as far as they are known."""
        now = self._monotonic()
        return {
            name: window.left
            for name, window in self._windows.items()
            if window.left is not None and now < window.resets_at
        }

    def _note(self, name: str, notice: WindowNotice) -> None:
        now = self._monotonic()
        seconds = notice.resets_in if notice.resets_in is not None else notice.length
        resets_at = now + (seconds or 0.0)
        known = self._windows.get(name)
        left = notice.left
        if known is not None and now < known.resets_at and abs(known.resets_at - resets_at) <= SAME_WINDOW:
            # Answers overtake each other; within one window the count only falls.
            left = min((n for n in (known.left, left) if n is not None), default=None)
        quota = notice.quota if notice.quota is not None else (known.quota if known is not None else None)
        length = notice.length if notice.length is not None else (known.length if known is not None else None)
        self._windows[name] = _Window(left, resets_at, quota, length)

    def _wait(self, *, releasing: bool) -> tuple[float, str]:
        """Seconds until every window is open, and the one that takes longest; calls under way left aside."""
        now = self._monotonic()
        waits = [(self._closed_until - now, "refused with 429")]
        for name, window in self._windows.items():
            if window.left is not None and window.left <= window.floor(releasing=releasing):
                waits.append((window.resets_at - now, f"{name} window"))
        return max(waits)

    def _full(self, *, releasing: bool) -> bool:
        """Whether calls under way may already use up what is left: their answers will tell."""
        if self._in_flight >= (MOST_IN_FLIGHT_RELEASING if releasing else MOST_IN_FLIGHT):
            return True
        now = self._monotonic()
        return self._in_flight > 0 and any(
            left - self._in_flight <= window.floor(releasing=releasing)
            for window in self._windows.values()
            if (left := window.left if now < window.resets_at else window.quota) is not None
        )

    async def _pause(self, seconds: float | None) -> None:
        """Until the next answer, at most `seconds`. No await lies between the look at the windows and this."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        sleeper = None if seconds is None else asyncio.ensure_future(self._sleep(seconds))
        try:
            await asyncio.wait(
                {waiter, sleeper} if sleeper is not None else {waiter}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            self._waiting.discard(waiter)
            if sleeper is not None:
                sleeper.cancel()


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
