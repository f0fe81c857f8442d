"""When is the Hub asked? Seldom: an answer that is known is not asked for again before its time."""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta

from gpupod_operator.api.phases import SweepCellPhase
from gpupod_operator.core.known import Unknown
from gpupod_operator.core.sweepcell.findings import held_outside, known_before
from gpupod_operator.core.sweepcell.places import Place, place_of, unsettled
from gpupod_operator.core.sweepcell.producing import fresh_agent
from gpupod_operator.core.sweepcell.scope import CellScope

RETRY = timedelta(seconds=30)
"""After an unknown answer, and while something is under way. Two calls a cell: 16 cells stay below the Hub's 1000
requests in 5 minutes (facts: hub, section 2) with room for four sweeps."""
OUT_OF_CONTACT = timedelta(seconds=60)
"""While the pod is out of contact the Hub is the only witness of the agent's work; also after a refused token."""
REPAIR = timedelta(minutes=5)
"""After a listing that showed a cell incomplete: the agent or a person has to act first."""
LONGEST_SLEEP = timedelta(minutes=5)

_SLOT_SECONDS = 600
"""Longer than the longest sleep, so that no slot is slept over."""
_MAY_HAVE_LANDED = frozenset({SweepCellPhase.PRODUCED, SweepCellPhase.UPLOADING})
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
    checked, phase, resync = scope.hub_checked_at, scope.status.phase, scope.spec.resync
    if checked is None:
        return _own_slot(scope) if phase is SweepCellPhase.VERIFIED else scope.now
    if isinstance(scope.listing, Unknown):
        return checked + RETRY
    if phase is SweepCellPhase.VERIFIED:
        return checked + resync
    if held_outside(known_before(scope.status)):
        return checked + OUT_OF_CONTACT
    if phase in _WRONG and scope.status.verification is not None:
        return checked + min(REPAIR, resync)
    if _says_uploaded(scope):
        return _after_commit(scope, checked)
    if scope.pod.contact_lost_at is not None and place_of(scope.status.observation, scope.pod) is Place.HERE:
        return checked + min(OUT_OF_CONTACT, resync)
    if phase in _MAY_HAVE_LANDED and scope.agent is None:
        return checked + min(REPAIR, resync)
    return checked + resync


def next_look(scope: CellScope) -> datetime:
    """The latest time of the next pass."""
    if scope.overlapping is not None or scope.token_problem is not None:
        return scope.now + LONGEST_SLEEP  # the Hub is not asked; an edit of either cell or of the Secret wakes or waits
    waiting = scope.deleting or isinstance(scope.listing, Unknown)
    longest = RETRY if waiting else LONGEST_SLEEP
    if scope.status.phase is SweepCellPhase.VERIFIED and not waiting:
        return max(hub_due_at(scope), scope.now + timedelta(seconds=1))
    due = min(hub_due_at(scope), scope.now + longest)
    return max(due, scope.now + timedelta(seconds=1))


def _says_uploaded(scope: CellScope) -> bool:
    """The agent says that the cell is on the Hub, and that is not verified yet."""
    agent = fresh_agent(scope)
    return agent is not None and agent.cell is not None and agent.cell.state == "Uploaded"


def _after_commit(scope: CellScope, checked: datetime) -> datetime:
    """At once when the commit is news, then at intervals: a listing may lag behind a commit."""
    seen = scope.status.observation
    news = seen is None or seen.state != "Uploaded" or seen.since is None or checked < seen.since
    return scope.now if news else checked + RETRY


def _own_slot(scope: CellScope) -> datetime:
    """The cell's own moment in each `resync`, so that an operator that starts does not list them all at once."""
    length = max(int(scope.spec.resync.total_seconds()), 1)
    into = (int(scope.now.timestamp()) - zlib.crc32(scope.uid.encode())) % length
    return scope.now if into < min(_SLOT_SECONDS, length / 2) else scope.now + timedelta(seconds=length - into)
