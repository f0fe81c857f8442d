"""How amounts, times and sizes are written for a person."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from gpupod_operator.api.gpupod_status import CostStatus


def dollars(amount: Decimal | None) -> str:
    """USD with two to four places; `?` where it is not known."""
    if amount is None:
        return "?"
    text = f"{amount:.4f}".rstrip("0")
    whole, _, places = text.partition(".")
    return f"${whole}.{places.ljust(2, '0')}"


def total_now(cost: CostStatus | None, now: datetime) -> Decimal:
    """USD over all attempts up to now: status holds a checkpoint, so that nothing in it ticks."""
    if cost is None:
        return Decimal(0)
    done = cost.accrued_at_since or Decimal(0)
    if cost.since is None or cost.per_hour is None:
        return done
    return done + cost.per_hour * Decimal(str(max((now - cost.since).total_seconds(), 0))) / 3600


def distance(moment: datetime | None, now: datetime) -> str:
    """`in 3m20s` or `4h ago`; two units at most."""
    if moment is None:
        return "-"
    seconds = int((moment - now).total_seconds())
    return f"in {_length(seconds)}" if seconds >= 0 else f"{_length(-seconds)} ago"


def size(count: int | None) -> str:
    """Bytes in powers of 1024."""
    if count is None:
        return "-"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _length(seconds: int) -> str:
    parts = []
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        number, seconds = divmod(seconds, length)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts[:2]) or "0s"
