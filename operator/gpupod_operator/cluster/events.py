"""Events on transitions, through `events.k8s.io/v1`, with a budget per object."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Protocol
from uuid import uuid4

from gpupod_operator.cluster import resources
from gpupod_operator.ports import Clock

BURST = 25
REFILL_SECONDS = 300.0
"""Events per object at once, and seconds until one more is allowed: client-go's own spam filter (25, 1/300 s)."""
REPEAT_SECONDS = 600.0
"""The sentence last said about an object is not said again for this long; a real flap says another one between."""
OBJECTS = 4096
"""Objects whose budget is remembered; the least recently heard of is forgotten first."""
NOTE_LIMIT = 1024
REASON_LIMIT = 128
"""Bytes that the API server takes in `note`; and in `reason`, `action` and `reportingInstance`."""


class Writer(Protocol):
    """How an event is sent: the client's own write, with its permit."""

    def __call__(self, method: str, path: str, *, body: Any) -> Awaitable[dict[str, Any]]: ...


@dataclass(slots=True)
class _Budget:
    tokens: float
    filled_at: float
    last_said: tuple[str, str] | None = None
    last_at: float = 0.0


class EventPoster:
    """Builds events and decides which are worth sending.

    `instance` names this process (the pod's name). `on_dropped` is told the reason of each event that the budget kept
    back: "Repeated" or "Flood".
    """

    def __init__(
        self,
        clock: Clock,
        *,
        controller: str,
        instance: str,
        monotonic: Callable[[], float] = time.monotonic,
        on_dropped: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._controller = controller
        self._instance = instance[:REASON_LIMIT]
        self._monotonic = monotonic
        self._on_dropped = on_dropped
        self._budgets: OrderedDict[str, _Budget] = OrderedDict()

    async def post(
        self,
        write: Writer,
        obj: Mapping[str, Any],
        *,
        kind: str,
        reason: str,
        message: str,
        warning: bool,
        action: str,
    ) -> None:
        """Send one event about `obj`, unless it repeats or floods. Raises what `write` raises."""
        metadata = obj["metadata"]
        note = _cut(message, NOTE_LIMIT)
        budget = self._admitted(str(metadata["uid"]), reason, note)
        if budget is None:
            return
        namespace = metadata["namespace"]
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name'][:200]}.{uuid4().hex[:16]}", "namespace": namespace},
            "regarding": {
                "apiVersion": obj.get("apiVersion"),
                "kind": kind,
                "namespace": namespace,
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata.get("resourceVersion"),
            },
            "eventTime": self._clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": "Warning" if warning else "Normal",
            "reason": _cut(reason, REASON_LIMIT),
            "action": _cut(action, REASON_LIMIT),
            "note": note,
            "reportingController": self._controller,
            "reportingInstance": self._instance,
        }
        await write("POST", resources.events(namespace), body=body)
        # after the write: what could not be sent may be tried again
        budget.last_said, budget.last_at = (reason, note), self._monotonic()

    def _admitted(self, uid: str, reason: str, note: str) -> _Budget | None:
        now = self._monotonic()
        budget = self._budgets.setdefault(uid, _Budget(BURST, now))
        self._budgets.move_to_end(uid)
        while len(self._budgets) > OBJECTS:
            self._budgets.popitem(last=False)
        if budget.last_said == (reason, note) and now - budget.last_at < REPEAT_SECONDS:
            self._on_dropped("Repeated")
            return None
        budget.tokens = min(BURST, budget.tokens + (now - budget.filled_at) / REFILL_SECONDS)
        budget.filled_at = now
        if budget.tokens < 1:
            self._on_dropped("Flood")
            return None
        budget.tokens -= 1
        return budget


def _cut(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8, never half a character."""
    data = text.encode()
    return text if len(data) <= limit else data[: limit - 3].decode(errors="ignore") + "..."
