"""Failures in a row of one and the same work: when it is tried again, and when it is worth telling anybody.

One refused connection is no news: told at once, it would write the status of every object that shares the work, and
again a moment later when all is well.
"""

from __future__ import annotations

from dataclasses import dataclass

TELL_AFTER = 3
"""Failures in a row."""
TELL_WITHIN = 30.0
"""Seconds of failing after which the next failure is told, however few there were: each may take its whole timeout."""
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds; doubled from the one to the other."""


@dataclass(slots=True)
class _Streak:
    since: float
    again: float = 0.0
    failures: int = 0
    kind: type[Exception] | None = None
    of_kind: int = 0
    told: type[Exception] | None = None


class Patience:
    """By name of the work. Times are of one monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._streaks: dict[str, _Streak] = {}

    def failed(self, name: str, error: Exception, now: float) -> bool:
        """Count a failure; True when it is to be told.

        One of a kind is told once, whatever words the later ones use, and of another kind only when that one lasts.
        """
        streak = self._streaks.setdefault(name, _Streak(now))
        streak.of_kind = streak.of_kind + 1 if streak.kind is type(error) else 1
        streak.kind = type(error)
        streak.again = now + min(FIRST_PAUSE * 2.0 ** min(streak.failures, 10), LONGEST_PAUSE)
        streak.failures += 1
        lasts = streak.failures >= TELL_AFTER or now - streak.since >= TELL_WITHIN
        if not lasts or streak.told is streak.kind or (streak.told is not None and streak.of_kind < TELL_AFTER):
            return False
        streak.told = streak.kind
        return True

    def ended(self, name: str) -> None:
        """It went well, or ended in something that is no failure to repeat."""
        self._streaks.pop(name, None)

    def again(self, name: str) -> float | None:
        """When the work is to be tried again, None for one that does not fail."""
        streak = self._streaks.get(name)
        return streak.again if streak is not None else None
