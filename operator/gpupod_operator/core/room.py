"""Ceilings of the whole operator, and what they leave to one object: per account, per namespace, and pods at once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from gpupod_operator.api.phases import MigrationStep
from gpupod_operator.api.reasons import Reason

REPLACING = (MigrationStep.CONFIRM_GONE, MigrationStep.CREATE)
"""Steps of a migration in which the old pod is ordered away and the new one is not made: its room is kept."""
SMALLEST = Decimal("0.0001")
"""USD per hour: stands in for a price that nobody knows, so that any room will do."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """USD per hour, and a number of pods; None: no such ceiling."""

    hourly_account: Decimal | None = None
    hourly_namespace: Decimal | None = None
    pods: int | None = None

    def __bool__(self) -> bool:
        return any(limit is not None for limit in (self.hourly_account, self.hourly_namespace, self.pods))


@dataclass(frozen=True, slots=True)
class Room:
    """What all others use and have been promised at this moment, in USD per hour and pods; not this object itself.

    `account` is what the account's complete list bills, pods of others included, and what is not on it yet. `ahead`
    names an older object that waits for the same ceiling.
    """

    ceilings: Ceilings
    account: Decimal
    namespace: Decimal
    pods: int
    ahead: str | None = None


@dataclass(frozen=True, slots=True)
class Exceeded:
    """`never`: not even with everything else gone."""

    reason: Reason
    words: str
    never: bool = False


def exceeded(room: Room, price: Decimal | None) -> Exceeded | None:
    """Whether a pod at this price does not fit: USD per hour, None where it is not known and any room will do.

    The words hold no figure of what others use: they would change, and be written, with every one of those.
    """
    more = price if price is not None else SMALLEST
    limits = room.ceilings
    for limit, used, reason, flag in (
        (limits.hourly_account, room.account, Reason.ACCOUNT_CEILING, "--max-hourly-account"),
        (limits.hourly_namespace, room.namespace, Reason.NAMESPACE_CEILING, "--max-hourly-namespace"),
    ):
        if limit is not None and used + more > limit:
            beside = "" if more > limit else " beside what bills and is on its way already"
            return Exceeded(
                reason, f"a pod at ${more:f}/h does not fit under {flag} ${limit:f}/h{beside}", more > limit
            )
    if limits.pods is not None and room.pods >= limits.pods:
        words = f"as many pods run or are on their way as --max-pods allows ({limits.pods})"
        return Exceeded(Reason.POD_CEILING, words, never=limits.pods < 1)
    return None
