"""`cost.maxBurn`: the most that the object can have cost if no operator ever looks again; None: nothing bounds it."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from gpupod_operator.api.gpupod_status import Attempt, AttemptIntent
from gpupod_operator.core.gpupod.scope import Presence, Scope
from gpupod_operator.core.provider import ProviderState

LATE = timedelta(hours=1)
"""A create whose outcome was unknown may show its pod so long. RunPod's own requests end after a minute or two."""


def max_burn(scope: Scope, spent: Decimal) -> Decimal | None:
    """USD. `spent` is what has accrued up to now.

    Bounded are: no pod, with no create that may still land; and a stopped pod whose disks cost nothing. A pod that
    runs, or is ordered to, goes on for ever, as does a volume of a stopped one.
    """
    attempt = scope.status.attempt
    if _may_still_land(scope, attempt):
        return None
    if scope.presence in (Presence.NONE, Presence.GONE):
        return spent
    cost = scope.status.cost
    stopped = scope.presence is Presence.PRESENT and scope.pod is not None and scope.pod.state is ProviderState.EXITED
    starts = attempt is not None and attempt.intent is AttemptIntent.START
    if stopped and not starts and cost is not None and not cost.per_hour:
        return spent
    return None


def may_land_until(attempt: Attempt | None) -> datetime | None:
    """Until when a pod of this attempt's creates may still appear that nobody has recorded; the next one carries it."""
    if attempt is None:
        return None
    open_since = attempt.intent_time if attempt.intent is AttemptIntent.CREATE else None
    since = max((t for t in (attempt.unknown_since, open_since) if t is not None), default=None)
    return max((t for t in (attempt.may_land_until, since and since + LATE) if t is not None), default=None)


def _may_still_land(scope: Scope, attempt: Attempt | None) -> bool:
    if attempt is not None and attempt.intent is AttemptIntent.CREATE:
        return True
    until = may_land_until(attempt)
    if until is None or scope.now >= until:
        return False
    scope.wake_at(until)
    return True
