"""Fault episodes: a clock starts at the first observation of a fault, lives in status, is cleared by recovery."""

from __future__ import annotations

from datetime import datetime

from gpupod_operator.api.gpupod_status import Episode
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.scope import Scope


def note_fault(scope: Scope, kind: Reason, first_seen: datetime | None = None, *, by_visit: bool = False) -> Episode:
    """Start or continue the episode. Observations count fresh lists only and stop at `confirmations` (no ticking).

    The kind may be refined (NeverPublished to PortLost) without restarting the clock: it is one unbroken loss.
    """
    before = scope.status.episode
    wanted = scope.spec.health.confirmations
    if before is None or before.first_seen is None:
        episode = Episode(kind=str(kind), first_seen=first_seen or scope.now, observations=1, resumes=0)
    else:
        seen = before.observations or 0
        fresh = scope.facts.visited_now if by_visit else scope.facts.new_list
        more = 1 if fresh and seen < wanted else 0
        episode = before.model_copy(update={"kind": str(kind), "observations": seen + more})
    scope.put(episode=episode)
    return episode


def clear_episode(scope: Scope) -> None:
    """Recovery, or an end: the clock is gone."""
    if scope.status.episode is not None:
        scope.put(episode=None)


def is_wedged(scope: Scope) -> bool:
    """The one predicate: older than `wedgeAfter` (strictly) and confirmed by enough fresh observations."""
    episode = scope.status.episode
    if episode is None or episode.first_seen is None:
        return False
    old = scope.now - episode.first_seen > scope.spec.health.wedge_after
    return old and (episode.observations or 0) >= scope.spec.health.confirmations


def wedge_due(scope: Scope) -> datetime | None:
    """When the episode becomes a wedge if nothing changes."""
    episode = scope.status.episode
    if episode is None or episode.first_seen is None:
        return None
    return episode.first_seen + scope.spec.health.wedge_after
