"""How a pod that is not reachable is shown: held for a reason of its own, not looked at, or on the wedge clock."""

from __future__ import annotations

from gpupod_operator.api.conditions import find_condition
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.episodes import clear_episode, is_wedged, wedge_due
from gpupod_operator.core.gpupod.scope import Scope, Step, Wait
from gpupod_operator.core.provider import ProviderPod
from gpupod_operator.core.shell import ShellReading


def held(scope: Scope, reason: Reason, message: str) -> Step:
    """Unreachable for a reason that moving the pod does not cure: own reason, no wedge clock."""
    clear_episode(scope)
    scope.condition("Reachable", False, reason, message)
    scope.wake_in(scope.policy.observe_every)
    return Wait(reason, f"{message}; it bills {scope.price}", stalled=True)


def not_visited(scope: Scope, pod: ProviderPod, reading: ShellReading) -> Step:
    """Our own key cannot be had: nothing is known. No clock starts, runs out or is cleared because of that."""
    words = f"pod {pod.id} cannot be visited for want of our own SSH key: {reading.message}"
    scope.condition("Reachable", None, Reason.SSH_KEY_UNAVAILABLE, words)
    scope.wake_in(scope.policy.observe_every)
    return Wait(Reason.SSH_KEY_UNAVAILABLE, f"{words}; it bills {scope.price}", stalled=True)


def unreachable(scope: Scope, pod: ProviderPod, kind: Reason, words: str) -> Step | None:
    """On the wedge clock: told, waited for, or a wedge (None: the caller asks `is_wedged`)."""
    due = wedge_due(scope)
    episode = scope.status.episode
    if episode is not None and (episode.observations or 0) < scope.spec.health.confirmations and _was_reachable(scope):
        # one look without a runtime is nothing: the host's daemon is asked with a timeout of two seconds
        before = find_condition(scope.before.conditions, "Reachable")
        assert before is not None
        scope.condition("Reachable", True, Reason(before.reason), before.message)
        scope.wake_in(scope.policy.observe_every)
        return Wait(kind, f"{words} in {episode.observations} of {scope.spec.health.confirmations} looks", steady=True)
    scope.condition("Reachable", False, kind, words)
    if is_wedged(scope):
        episode = scope.status.episode
        assert episode is not None and episode.first_seen is not None
        scope.condition(
            "Wedged",
            True,
            kind,
            f"{words} since {episode.first_seen:%Y-%m-%dT%H:%M:%SZ}, seen {episode.observations} times; RunPod says "
            f"{pod.raw_state} and bills {scope.price}",
        )
        return None
    if due is not None:
        scope.wake_at(due)
    scope.wake_in(scope.policy.observe_every)
    return Wait(
        kind,
        f"{words}; RunPod says {pod.raw_state} and bills {scope.price}. A wedge at "
        f"{due:%Y-%m-%dT%H:%M:%SZ} unless it recovers"
        if due is not None
        else words,
        until=due,
    )


def _was_reachable(scope: Scope) -> bool:
    before = find_condition(scope.before.conditions, "Reachable")
    return before is not None and before.status == "True"


def words_of(kind: Reason, pod: ProviderPod) -> str:
    """What the pod lacks, by the kind of its fault."""
    return {
        Reason.PORT_NOT_DECLARED: f"pod {pod.id} does not declare 22/tcp",
        Reason.PRIVATE_MAPPING_ONLY: f"pod {pod.id} has a mapping without a public address",
        Reason.PORT_LOST: f"pod {pod.id} had a public port and lost it",
        Reason.NEVER_PUBLISHED: f"pod {pod.id} never published a port",
    }[kind]
