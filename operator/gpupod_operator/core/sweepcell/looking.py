"""When is the Hub asked? Seldom: an answer that is known is not asked for again before its time."""

from __future__ import annotations

from datetime import datetime, timedelta

from gpupod_operator.api.phases import SweepCellPhase
from gpupod_operator.core.known import Unknown
from gpupod_operator.core.sweepcell.places import Place, place_of, unsettled
from gpupod_operator.core.sweepcell.scope import CellScope

RETRY = timedelta(seconds=30)
"""After an unknown answer, and while something is under way. Two calls a cell: 16 cells stay below the Hub's 1000
requests in 5 minutes (facts: hub, section 2) with room for four sweeps."""
OUT_OF_CONTACT = timedelta(seconds=60)
"""While the pod is out of contact the Hub is the only witness of the agent's work."""
REPAIR = timedelta(minutes=5)
"""After a listing that showed a cell incomplete: the agent or a person has to act first."""
LONGEST_SLEEP = timedelta(minutes=5)

_WRONG = frozenset({SweepCellPhase.PARTIAL, SweepCellPhase.BLOCKED})


def hub_due(scope: CellScope) -> bool:
    """The listing has to be read in this pass before anything is decided."""
    if scope.listing is not None or scope.overlapping is not None or scope.token_problem is not None:
        return False
    if scope.deleting or unsettled(scope.spec, scope.status, scope.pod):
        return True
    return scope.now >= hub_due_at(scope)


def hub_due_at(scope: CellScope) -> datetime:
    """When the Hub is to be asked next if nothing else happens."""
    checked = scope.hub_checked_at
    if checked is None:
        return scope.now
    if isinstance(scope.listing, Unknown):
        return checked + RETRY
    phase, resync = scope.status.phase, scope.spec.resync
    if phase is SweepCellPhase.VERIFIED:
        return checked + resync
    if phase in _WRONG and scope.status.verification is not None:
        return checked + min(REPAIR, resync)
    if _landed(scope):
        return checked + RETRY if scope.status.verification is not None else scope.now
    if scope.pod.contact_lost_at is not None and place_of(scope.status.observation, scope.pod) is Place.HERE:
        return checked + min(OUT_OF_CONTACT, resync)
    return checked + resync


def next_look(scope: CellScope) -> datetime:
    """The latest time of the next pass."""
    waiting = scope.deleting or isinstance(scope.listing, Unknown)
    longest = RETRY if waiting else LONGEST_SLEEP
    if scope.status.phase is SweepCellPhase.VERIFIED and not waiting:
        longest = scope.spec.resync
    due = min(hub_due_at(scope), scope.now + longest)
    return max(due, scope.now + timedelta(seconds=1))


def _landed(scope: CellScope) -> bool:
    """The agent says that the cell is on the Hub, and that is not verified yet."""
    agent = scope.agent
    said = agent is not None and agent.cell is not None and agent.cell.state == "Uploaded"
    return said or scope.status.phase is SweepCellPhase.UPLOADING
