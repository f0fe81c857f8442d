"""How one cell stands before the act: fine, in the way, or not known. Values only; `cells` decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gpupod_operator.api.reasons import Reason


class Standing(StrEnum):
    """FINE needs nothing; UNFINISHED is listed as re-run or discarded once the workload is at rest."""

    FINE = "Fine"
    UNFINISHED = "Unfinished"
    UPLOADING = "Uploading"
    BLOCKS = "Blocks"
    UNKNOWN = "Unknown"


class Outcome(StrEnum):
    """What becomes of the cell if the act is done."""

    VERIFIED = "Verified"
    KEPT = "Kept"
    NOTHING = "Nothing"
    UNFINISHED = "Unfinished"
    LOST = "Lost"
    ABANDONED = "Abandoned"


@dataclass(frozen=True, slots=True)
class CellStanding:
    """`outcome` and `evidence` are for the receipt; `producing` means that a process writes the cell just now.

    `note` is half a sentence that the receipt's policy must carry (how an unreachable cell was judged).
    """

    name: str
    standing: Standing
    message: str
    outcome: Outcome = Outcome.NOTHING
    reason: Reason = Reason.CELLS_UNVERIFIED
    edit: str = ""
    missing: tuple[str, ...] = ()
    mismatched: tuple[str, ...] = ()
    producing: bool = False
    in_flight: bool = False
    note: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
