"""I6, and that no bill is higher than the status says: the vendor's ledger against `status.cost`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

GRAIN = Decimal("0.002")
"""USD: four places in status, the vendor's own rounding of a price, and the moment between the two looks."""


def beyond(
    ledger: Iterable[Mapping[str, Any]], objects: Iterable[Mapping[str, Any]], factor: Decimal, now: datetime
) -> Iterator[str]:
    """Every object that was billed more than its status says or bounds.

    `ledger` is `/_sim/ledger`'s pods, read before `objects`; `factor` is how many seconds it bills for each.
    """
    rows = list(ledger)
    for one in objects:
        cost, attempt = ((one.get("status") or {}).get(name) or {} for name in ("cost", "attempt"))
        name, owner = one["metadata"]["name"], f"/{one['metadata']['uid']}"
        ours = [Decimal(row["billed"]) for row in rows if (row["owner"] or "").endswith(owner)]
        billed, worst = sum(ours, Decimal(0)) / factor, cost.get("maxBurn")
        if worst is not None and billed > Decimal(worst) + GRAIN:
            yield f"I6: {name} was billed ${billed:.4f}, and maxBurn is ${worst}"
        knows = attempt.get("podId") and not attempt.get("unknownSince") and not attempt.get("mayLandUntil")
        if knows and cost.get("since") and billed > _told(cost, now) + GRAIN:
            yield f"money: {name} was billed ${billed:.4f}, and its status says ${_told(cost, now):.4f}"


def _told(cost: Mapping[str, Any], now: datetime) -> Decimal:
    hours = Decimal(str((now - datetime.fromisoformat(cost["since"])).total_seconds())) / 3600
    return Decimal(cost.get("accruedAtSince") or 0) + Decimal(cost.get("perHour") or 0) * hours
