"""Money as checkpoints: price and since when; readers add the rest (no field ticks)."""

from __future__ import annotations

from decimal import Decimal

from gpupod_operator.api.gpupod_status import CostStatus
from gpupod_operator.core.gpupod.scope import Presence, Scope
from gpupod_operator.core.provider import ProviderState

STOPPED_GB_MONTH = Decimal("0.20")
"""USD per GB and month of a persistent volume while stopped (RunPod's price list); a month is 730 hours."""
HOURS_PER_MONTH = Decimal(730)


def accrued(scope: Scope) -> Decimal:
    """USD over all attempts up to now, from the last checkpoint."""
    cost = scope.status.cost
    if cost is None:
        return Decimal(0)
    done = cost.accrued_at_since or Decimal(0)
    if cost.since is None or cost.per_hour is None:
        return done
    seconds = Decimal(str((scope.now - cost.since).total_seconds()))
    return done + cost.per_hour * seconds / 3600


def checkpoint(scope: Scope) -> None:
    """Move the checkpoint when the price that is being paid changed; otherwise write nothing."""
    rate = _rate(scope)
    before = scope.status.cost
    if rate is None:
        return
    current = before.per_hour if before is not None and before.per_hour is not None else Decimal(0)
    if before is not None and current == rate:
        return
    if before is None and rate == 0:
        return
    scope.put(
        cost=CostStatus(
            per_hour=rate,
            since=scope.now,
            accrued_at_since=accrued(scope),
            stopped_per_hour=stopped_rate(scope),
        )
    )


def _rate(scope: Scope) -> Decimal | None:
    """USD per hour being paid now; None while unknown (the last known rate keeps running)."""
    if scope.presence in (Presence.NONE, Presence.GONE):
        return Decimal(0)
    pod = scope.pod
    if scope.presence is not Presence.PRESENT or pod is None:
        return None
    if pod.state is ProviderState.EXITED:
        return stopped_rate(scope)
    return pod.cost_per_hour


def stopped_rate(scope: Scope) -> Decimal:
    """USD per hour of the host volume of a stopped pod: the vendor's `cost` does not show it."""
    pod = scope.pod
    size = pod.persistent_gb if pod is not None else None
    if size is None and scope.spec.volume is not None and scope.spec.volume.persistent is not None:
        size = scope.spec.volume.persistent.size_gb
    return (STOPPED_GB_MONTH * (size or 0) / HOURS_PER_MONTH).quantize(Decimal("0.0001"))
