"""The cells of one pod in four numbers."""

from __future__ import annotations

from collections.abc import Iterable

from gpupod_operator.api.gpupod_status import CellsStatus
from gpupod_operator.api.phases import SweepCellPhase
from gpupod_operator.api.sweepcell import SweepCellStatus

_IN_FLIGHT = frozenset(
    {SweepCellPhase.PRODUCING, SweepCellPhase.PRODUCED, SweepCellPhase.UPLOADING, SweepCellPhase.PARTIAL}
)
_BLOCKED = frozenset({SweepCellPhase.BLOCKED, SweepCellPhase.FAILED, SweepCellPhase.LOST})


def cells_summary(cells: Iterable[SweepCellStatus]) -> CellsStatus:
    """`declared` counts all, `inFlight` what is produced or uploaded now, `blocked` what a person should look at."""
    phases = [cell.phase or SweepCellPhase.PENDING for cell in cells]
    verified = sum(phase is SweepCellPhase.VERIFIED for phase in phases)
    return CellsStatus(
        declared=len(phases),
        verified=verified,
        in_flight=sum(phase in _IN_FLIGHT for phase in phases),
        blocked=sum(phase in _BLOCKED for phase in phases),
        summary=f"{verified}/{len(phases)}",
    )
