"""Waiting longer each time, not in step with the rest of the fleet."""

from __future__ import annotations

from datetime import timedelta

from gpupod_operator.core.gpupod.scope import Scope


def backoff_delay(failures: int, first: timedelta, most: timedelta) -> timedelta:
    """30 s doubling to 10 min."""
    return min(first * (1 << min(failures, 10)), most)


def jittered(delay: timedelta, scope: Scope) -> timedelta:
    """75 to 100 % of the delay, from the pass's own randomness, so that a fleet does not retry in step."""
    share = int(scope.entropy[-2:], 16) / 255
    return timedelta(seconds=delay.total_seconds() * (0.75 + 0.25 * share))
