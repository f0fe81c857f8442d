"""Points: the moments right before and right after everything that a process does to the outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any


class Mishap(StrEnum):
    """What happens at a point. CONFLICT and LOST strike only where they make sense."""

    KILL = "kill"
    OUTAGE = "outage"
    """The API server is away for ten minutes from here on."""
    CONFLICT = "conflict"
    """Before a write to the API server: somebody else was faster."""
    LOST = "lost"
    """After a write to the API server: it took effect, and the answer never came."""
    REPEATED = "repeated"
    """For a minute the watch tells each event four times, the last time 20 s late."""
    REORDERED = "reordered"
    """For a minute the watch tells every other event after its successor."""
    DEAF = "deaf"
    """For a minute the watch tells nothing; then it begins anew with a list."""


WRITES = ("cluster.apply_status", "cluster.set_finalizer", "cluster.apply_config")
"""What conflicts and lost answers strike."""
OF_THE_WATCH = (Mishap.REPEATED, Mishap.REORDERED, Mishap.DEAF)


class Killed(BaseException):
    """The process is gone: nothing catches this, and nothing that it holds does anything any more."""


class Points:
    """Numbers the points of all processes of a scene, from `arm` on."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.mishaps: Mapping[int, Mishap] = {}
        self.armed = False

    def arm(self, mishaps: Mapping[int, Mishap]) -> None:
        """Count from here on."""
        self.names, self.mishaps, self.armed = [], mishaps, True

    def passed(self, name: str) -> Mishap | None:
        """Count one; what happens there."""
        if not self.armed:
            return None
        self.names.append(name)
        return self.mishaps.get(len(self.names) - 1)


class Mortal:
    """A port of one process: each call has a point before it and one after it."""

    def __init__(self, inner: Any, name: str, at_point: Callable[[str], None]) -> None:
        self._inner = inner
        self._name = name
        self._at_point = at_point

    def __getattr__(self, method: str) -> Any:
        target = getattr(self._inner, method)

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._at_point(f"before {self._name}.{method}")
            answer = await target(*args, **kwargs)
            self._at_point(f"after {self._name}.{method}")
            return answer

        return call
