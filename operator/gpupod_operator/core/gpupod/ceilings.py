"""Before every create and every start: is there room under the operator's ceilings, and is it this object's turn?"""

from __future__ import annotations

from decimal import Decimal

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.scope import Scope, Wait
from gpupod_operator.core.room import REPLACING, Exceeded, exceeded


def check_ceilings(scope: Scope, price: Decimal | None) -> Wait | None:
    """None: it fits, and it is this object's turn. A replacement need not queue: its room was kept for it."""
    room = scope.facts.room
    if room is None:
        return None
    found = exceeded(room, price)
    if found is None and room.ahead is not None and not _replaces(scope):
        found = Exceeded(Reason.CEILING_QUEUE, f"GpuPod {room.ahead} is older and waits under the same ceiling")
    if found is None:
        return None
    scope.condition("SpendAllowed", False, found.reason, found.words)
    remedy = "raise it, or choose a cheaper pod" if found.never else "it is made once there is room"
    return Wait(found.reason, f"{found.words}; {remedy}. Nothing bills meanwhile", stalled=found.never)


def _replaces(scope: Scope) -> bool:
    migration = scope.status.migration
    return migration is not None and migration.step in REPLACING
