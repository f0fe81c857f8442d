"""Which of the Hub's three 429s it is, and how long to wait.

They need waits of up to an hour, minutes, and seconds, and only the text tells them apart: the `RateLimit` headers come
on every answer and are healthy on a 429 of the commit quota.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

COMMIT, API, QUEUE = "Commit", "Api", "Queue"

# Used when the answer names no wait. Commit: the quota is per hour. Api: its window is 5 minutes. Queue: reported to
# clear within seconds.
DEFAULT_WAIT = {COMMIT: 3600.0, API: 300.0, QUEUE: 10.0}
# No window of the Hub is longer than an hour; a larger number is a broken header and must not park a cell for a day.
LONGEST_WAIT = 3900.0

_COMMIT_TEXTS = ("rate limit for repository commits", "hourly quotas for action: commit")
_QUEUE_TEXTS = ("maximum queue size reached", "maximum time in concurrency queue reached")
_COMMIT_LIMIT = re.compile(r"repository commits \((\d+) per hour\)", re.IGNORECASE)
_SPOKEN_WAIT = re.compile(r"retry this action in (?:about )?(an?|\d+) (second|minute|hour)s?", re.IGNORECASE)
_RATE_LIMIT = re.compile(r'"(?P<name>[^"]*)"\s*;\s*r=(?P<remaining>\d+)\s*;\s*t=(?P<reset>\d+)')
_UNIT_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}


def throttling(headers: Mapping[str, str], text: str) -> tuple[str, float]:
    """The kind of a 429 (`Commit`, `Api`, `Queue`) and the seconds to wait.

    Trusted in this order: the text (commit quota), `RateLimit` with nothing remaining, `Retry-After`, a default.
    """
    lowered = text.lower()
    if any(known in lowered for known in _COMMIT_TEXTS):
        return COMMIT, _bounded(_spoken_wait(text) or DEFAULT_WAIT[COMMIT])
    kind = QUEUE if any(known in lowered for known in _QUEUE_TEXTS) else API
    wait = _reset_of_spent_window(headers.get("RateLimit", "")) or _retry_after(headers) or DEFAULT_WAIT[kind]
    return kind, _bounded(wait)


def commit_limit(text: str) -> int | None:
    """Commits per hour that a refusal of the Hub names, None when it names none."""
    found = _COMMIT_LIMIT.search(text)
    return int(found.group(1)) if found else None


def _spoken_wait(text: str) -> float | None:
    found = _SPOKEN_WAIT.search(text)
    if found is None:
        return None
    amount = 1 if found.group(1).lower() in ("a", "an") else int(found.group(1))
    # The Hub rounds ("about 1 hour", "43 minutes"): half a unit more keeps the retry from coming just too early.
    slack = 30.0 if found.group(2).lower() == "minute" else 0.0
    return amount * _UNIT_SECONDS[found.group(2).lower()] + slack


def _reset_of_spent_window(header: str) -> float | None:
    waits = [float(found["reset"]) + 1 for found in _RATE_LIMIT.finditer(header) if int(found["remaining"]) == 0]
    return max(waits, default=None)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After", "").strip()
    return float(text) + 1 if text.isdecimal() else None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 1.0), LONGEST_WAIT)
