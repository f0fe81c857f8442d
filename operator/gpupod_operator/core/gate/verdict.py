"""What the gate answers. Only `Safe` permits the act, only in the pass that asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

from gpupod_operator.api.gpupod_status import Receipt
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate.question import GateNeed


@dataclass(frozen=True, slots=True)
class Block:
    """One thing in the way, for people: what, which cell, which files (at most 20), and the edit that unblocks."""

    reason: Reason
    message: str
    edit: str
    cell: str | None = None
    missing: tuple[str, ...] = ()
    mismatched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Safe:
    """Permitted. The receipt goes into status before the act; `evidence` is what its digest was taken over."""

    receipt: Receipt
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blocked:
    """Refused for known reasons; asked again at every pass."""

    blocks: tuple[Block, ...]
    price_per_hour: Decimal | None = None

    @property
    def reason(self) -> Reason:
        return self.blocks[0].reason

    @property
    def why(self) -> str:
        """One sentence for the condition: the first blocks, the edit, and what waiting costs."""
        shown = self.blocks[:5]
        parts = [f"{b.message} ({b.edit})" if b.edit else b.message for b in shown]
        if len(self.blocks) > len(shown):
            parts.append(f"and {len(self.blocks) - len(shown)} more")
        return "; ".join(parts) + price_of_waiting(self.price_per_hour)


@dataclass(frozen=True, slots=True)
class Undecided:
    """Refused because something is unknown; asked again at every pass."""

    why: str
    reason: Reason = Reason.CELLS_UNKNOWN


@dataclass(frozen=True, slots=True)
class NeedsFacts:
    """Read these in this pass and ask again."""

    needs: frozenset[GateNeed]


@dataclass(frozen=True, slots=True)
class DrainFirst:
    """End the workload (recorded as intent first), read again, ask again. `cells` are those being computed."""

    cells: tuple[str, ...]
    why: str


Verdict: TypeAlias = Safe | Blocked | Undecided | NeedsFacts | DrainFirst


def price_of_waiting(price_per_hour: Decimal | None) -> str:
    """Half a sentence with the price of waiting in USD per hour, empty when it is not known."""
    return "" if price_per_hour is None else f"; waiting costs ${price_per_hour}/h"
