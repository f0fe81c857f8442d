"""Money as checkpoints: price and since when; readers add the rest (no field ticks).

What is not known exactly counts as paid: from the order of a create or a start (by our own clock), whatever its answer
took, and until a pod is proven gone or seen stopped.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from gpupod_operator.api.gpupod_status import AttemptCause, AttemptIntent, CostStatus
from gpupod_operator.core.gpupod.burn import SMALLEST, max_burn
from gpupod_operator.core.gpupod.scope import Presence, Scope
from gpupod_operator.core.provider import ProviderPod, ProviderState

STOPPED_GB_MONTH = Decimal("0.20")
"""USD per GB and month of a persistent volume while stopped (RunPod's price list); a month is 730 hours."""
RUNNING_GB_MONTH = Decimal("0.10")
"""The same while the pod runs. The vendor's `cost` holds the container disk and not this."""
HOURS_PER_MONTH = Decimal(730)


def accrued(scope: Scope) -> Decimal:
    """USD over all attempts up to now, from the last checkpoint."""
    cost = scope.status.cost
    if cost is None:
        return Decimal(0)
    done = cost.accrued_at_since or Decimal(0)
    if cost.since is None or cost.per_hour is None:
        return done
    return done + bill(cost.per_hour, cost.since, scope.now)


def bill(per_hour: Decimal, since: datetime, until: datetime) -> Decimal:
    """USD of a stretch of time at one price; nothing for a stretch that ends before it begins."""
    return per_hour * max(Decimal(str((until - since).total_seconds())), Decimal(0)) / 3600


def checkpoint(scope: Scope) -> None:
    """Move the checkpoint when the price that is being paid changed, or the worst case; otherwise write nothing."""
    _running_price(scope)
    rate = _rate(scope)
    before = scope.status.cost
    if rate is not None and rate != _paid(before):
        rise = max(rate - _paid(before), Decimal(0))
        scope.put(
            cost=CostStatus(
                per_hour=rate,
                since=scope.now,
                accrued_at_since=accrued(scope) + bill(rise, _rose_at(scope), scope.now),
                stopped_per_hour=stopped_rate(scope),
                max_burn=before.max_burn if before is not None else None,
            )
        )
    cost = scope.status.cost
    if cost is not None:
        worst = max_burn(scope, accrued(scope))
        if worst != cost.max_burn:
            scope.put(cost=cost.model_copy(update={"max_burn": worst}))


def _running_price(scope: Scope) -> None:
    """What the pod bills while it runs stays on record for when it is stopped, which shows as 0."""
    pod, attempt = scope.pod, scope.status.attempt
    seen = scope.presence in (Presence.PRESENT, Presence.FRESH) and pod is not None and attempt is not None
    if seen and pod is not None and attempt is not None and pod.cost_per_hour and attempt.per_hour != pod.cost_per_hour:
        scope.put_attempt(per_hour=pod.cost_per_hour)


def charge(scope: Scope, pod: ProviderPod, since: datetime) -> None:
    """A pod beside the recorded one is ordered deleted: it costs the object from `since` to the next look."""
    until = scope.now + scope.policy.observe_every
    cost = scope.status.cost or CostStatus(per_hour=Decimal(0), since=scope.now)
    more = bill((pod.cost_per_hour or Decimal(0)) + running_volume_rate(pod.persistent_gb), since, until)
    scope.put(cost=cost.model_copy(update={"accrued_at_since": (cost.accrued_at_since or Decimal(0)) + more}))


def _paid(cost: CostStatus | None) -> Decimal:
    return cost.per_hour if cost is not None and cost.per_hour is not None else Decimal(0)


def _rose_at(scope: Scope) -> datetime:
    """Since when the higher price has been paid: the first order or start after the last checkpoint, if any."""
    attempt, cost, pod = scope.status.attempt, scope.status.cost, scope.pod
    since = cost.since if cost is not None else None
    known = scope.before.pod if attempt is not None and scope.before.pod is not None else None
    same = known is not None and attempt is not None and known.id == attempt.pod_id
    told: list[datetime | None] = [attempt.start_requested_at if attempt is not None else None]
    if pod is not None and same and known is not None and pod.started_at != known.started_at:
        told.append(pod.started_at)
    if not same or not _paid(cost):
        told += _created(scope)
    return min((t for t in told if t is not None and (since is None or t >= since)), default=scope.now)


def _created(scope: Scope) -> list[datetime | None]:
    """When the pod was ordered; an adopted one costs this object nothing before it is adopted."""
    attempt, before = scope.status.attempt, scope.before.attempt
    if attempt is None or (attempt.cause is AttemptCause.ADOPT and not attempt.taken_over):
        return []
    ordered = before.intent_time if before is not None and before.pod_id is None else None
    return [ordered, attempt.unknown_since, attempt.created_at]


def _rate(scope: Scope) -> Decimal | None:
    """USD per hour being paid now; None while unknown (the last known rate keeps running)."""
    if scope.presence in (Presence.NONE, Presence.GONE):
        return Decimal(0)
    pod = scope.pod
    if scope.presence not in (Presence.PRESENT, Presence.FRESH) or pod is None:
        return None
    if pod.state is ProviderState.EXITED:
        return _starting_rate(scope) or stopped_rate(scope)
    if pod.cost_per_hour is None:
        return None
    return pod.cost_per_hour + running_volume_rate(_volume_gb(scope))


def _starting_rate(scope: Scope) -> Decimal | None:
    """A start is ordered and its outcome not seen: it counts as running, at its price before it was stopped."""
    attempt = scope.status.attempt
    if attempt is None or attempt.intent is not AttemptIntent.START or attempt.per_hour is None:
        return None
    return attempt.per_hour + running_volume_rate(_volume_gb(scope))


def stopped_rate(scope: Scope) -> Decimal:
    """USD per hour of the host volume of a stopped pod: the vendor's `cost` does not show it."""
    return (STOPPED_GB_MONTH * (_volume_gb(scope) or 0) / HOURS_PER_MONTH).quantize(SMALLEST)


def running_volume_rate(size_gb: int | None) -> Decimal:
    """USD per hour of the host volume of a running pod."""
    return (RUNNING_GB_MONTH * (size_gb or 0) / HOURS_PER_MONTH).quantize(SMALLEST)


def _volume_gb(scope: Scope) -> int | None:
    pod = scope.pod
    size = pod.persistent_gb if pod is not None else None
    if size is None and scope.spec.volume is not None and scope.spec.volume.persistent is not None:
        size = scope.spec.volume.persistent.size_gb
    return size
