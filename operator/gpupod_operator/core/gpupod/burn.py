"""`cost.maxBurn`: the most that the object can have cost if no operator ever looks again; None: nothing bounds it."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal

from gpupod_operator.api.gpupod_status import Attempt, AttemptIntent
from gpupod_operator.api.policies import ArtifactsPolicy
from gpupod_operator.core.gpupod.scope import Presence, Scope
from gpupod_operator.core.gpupod.timer import armed_until
from gpupod_operator.core.provider import ProviderState

SMALLEST = Decimal("0.0001")
LATE = timedelta(hours=1)
"""A create whose outcome was unknown may show its pod so long. RunPod's own requests end after a minute or two."""


def max_burn(scope: Scope, spent: Decimal) -> Decimal | None:
    """USD. `spent` is what has accrued up to now.

    Bounded are: no pod, with no create that may still land; a stopped pod whose disks cost nothing; and a running one
    that stops itself, where nothing can keep its timer from it. Any other pod that runs, or is ordered to, goes on for
    ever, as does a volume of a stopped one.
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
    return _until_the_timer(scope)


def _until_the_timer(scope: Scope) -> Decimal | None:
    """A running pod whose timer nothing holds up: no result is unsaved, and no volume bills on after the stop."""
    until, cost, pod, cells = armed_until(scope), scope.status.cost, scope.pod, scope.status.cells
    running = scope.presence is Presence.PRESENT and pod is not None and pod.state is ProviderState.RUNNING
    if (
        until is None
        or not running
        or cost is None
        or cost.since is None
        or cost.per_hour is None
        or cost.stopped_per_hour
    ):
        return None
    if scope.now >= until:
        return None  # it should have stopped; whatever keeps it may keep it for ever
    saved = cells is not None and cells.declared is not None and cells.verified == cells.declared
    if scope.spec.remediation.artifacts is not ArtifactsPolicy.DISPOSABLE and not saved:
        return None
    scope.wake_at(until)
    seconds = Decimal(str((until - cost.since).total_seconds()))
    worst = (cost.accrued_at_since or Decimal(0)) + cost.per_hour * seconds / 3600
    return worst.quantize(SMALLEST, ROUND_CEILING)


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
