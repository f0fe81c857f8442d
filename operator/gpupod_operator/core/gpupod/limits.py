"""`spend.ttl` and `spend.maxTotal`: ends that money orders, through the gate. Blocked does not destroy, it says so."""

from __future__ import annotations

from datetime import datetime, timedelta

from gpupod_operator.api.gpupod_status import Receipt
from gpupod_operator.api.policies import EndPolicy
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import DrainFirst, GateReason
from gpupod_operator.core.gpupod import migration, permission, stopping
from gpupod_operator.core.gpupod.draining import drain
from gpupod_operator.core.gpupod.scope import Scope, Step, Wait
from gpupod_operator.core.gpupod.spend import accrued
from gpupod_operator.core.gpupod.timer import stopped_by_timer


def check_limits(scope: Scope) -> Step | None:
    """End the running pod once its time or its money is used up. None: within the limits (and woken when they end)."""
    reached = _reached(scope)
    if reached is None:
        return None
    return _end(scope, *reached, scope.spec.spend.on_limit)


def ended_by_timer(scope: Scope) -> Step | None:
    """The pod stopped itself while no operator did: its end is recorded, and what `onLimit` wants besides is done."""
    if not stopped_by_timer(scope):
        return None
    still = _reached(scope) is not None
    why = "spend.ttl is over; the timer on the pod stopped it"
    return _end(scope, Reason.TTL_EXPIRED, why, scope.spec.spend.on_limit if still else EndPolicy.STOP)


def _end(scope: Scope, reason: Reason, why: str, policy: EndPolicy) -> Step:
    scope.condition("SpendAllowed", False, reason, why)
    if policy is EndPolicy.STOP:
        return stopping.stop(scope, GateReason.EXPIRE, why)
    verdict = permission.ask(scope, GateReason.EXPIRE)
    if isinstance(verdict, DrainFirst):
        return drain(scope, verdict)
    if not isinstance(verdict, Receipt):
        return verdict
    return migration.delete(scope, verdict, why)


def total_used_up(scope: Scope) -> Step | None:
    """Before a create or a start: `maxTotal` over all attempts leaves nothing to spend."""
    limit = scope.spec.spend.max_total
    spent = accrued(scope)
    if limit is None or spent < limit:
        return None
    words = f"spend.maxTotal of ${limit:f} over all attempts is used up"
    scope.condition("SpendAllowed", False, Reason.TOTAL_EXHAUSTED, words)
    return Wait(
        Reason.TOTAL_EXHAUSTED, f"{words}: no pod is created or started. Raise spend.maxTotal to go on", stalled=True
    )


def _reached(scope: Scope) -> tuple[Reason, str] | None:
    spend, attempt = scope.spec.spend, scope.status.attempt
    created = attempt.created_at if attempt is not None else None
    if spend.ttl is not None and created is not None:
        end = created + spend.ttl
        if scope.now >= end:
            return Reason.TTL_EXPIRED, f"spend.ttl is over since {end:%Y-%m-%dT%H:%M:%SZ}"
        scope.wake_at(end)
    if spend.max_total is None:
        return None
    spent = accrued(scope)
    if spent >= spend.max_total:
        return Reason.TOTAL_EXHAUSTED, f"spend.maxTotal of ${spend.max_total:f} is used up"
    due = _used_up_at(scope)
    if due is not None:
        scope.wake_at(due)
    return None


def _used_up_at(scope: Scope) -> datetime | None:
    """When the money ends at the present price."""
    cost, limit = scope.status.cost, scope.spec.spend.max_total
    if cost is None or not cost.per_hour or limit is None:
        return None
    hours = float((limit - accrued(scope)) / cost.per_hour)
    return scope.now + timedelta(hours=min(max(hours, 0.0), 24.0 * 365))
