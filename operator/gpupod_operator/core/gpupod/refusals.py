"""RunPod refuses an order of ours: the status says so, in the vendor's words, with what it costs meanwhile."""

from __future__ import annotations

from dataclasses import replace

from gpupod_operator.api.gpupod_status import AttemptIntent, RefusedAct
from gpupod_operator.api.policies import PodState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.scope import Presence, Scope, Step, Wait
from gpupod_operator.core.provider import Failure, ProviderState

REASONS = {
    Failure.UNAUTHORIZED: Reason.UNAUTHORIZED,
    Failure.FORBIDDEN: Reason.FORBIDDEN,
    Failure.API_GONE: Reason.PROVIDER_API_GONE,
    Failure.UNAVAILABLE: Reason.PROVIDER_UNAVAILABLE,
}
"""Whatever else it refuses is `ActFailed`."""
REMEDIES = {
    Reason.UNAUTHORIZED: "give the operator a key that may write, or do it in the console",
    Reason.FORBIDDEN: "give the operator a key that may write, or do it in the console",
    Reason.PROVIDER_API_GONE: "do it in the console, and update the operator",
    Reason.PROVIDER_UNAVAILABLE: "it passes, or what stands between the operator and RunPod must change",
    Reason.ACT_FAILED: "do it in the console if it goes on",
}
_STANDING = (AttemptIntent.DELETE, AttemptIntent.STOP, AttemptIntent.PATCH, AttemptIntent.START)
"""Orders that stay in force and are repeated; a refused create is given up and waits."""
FOR_A_PERSON = (Reason.UNAUTHORIZED, Reason.FORBIDDEN, Reason.PROVIDER_API_GONE, Reason.ACT_FAILED)
"""What does not pass by itself: `Stalled`, though it is tried again."""


def refused_so_far(scope: Scope, step: Step | None) -> Step | None:
    """The step, as a wait that names the refusal where an order that stands was refused and the pod is still there."""
    attempt = scope.status.attempt
    if attempt is None or attempt.refused is None:
        return step
    refused = attempt.refused
    if attempt.intent in (None, AttemptIntent.NONE) and not _start_is_due(scope, refused):
        scope.put_attempt(refused=None)  # nothing is ordered any more
        return step
    same = refused.act is attempt.intent and refused.act in _STANDING
    if not same or scope.presence is not Presence.PRESENT or not isinstance(step, Wait):
        return step
    reason = reason_of(refused.failure)
    bills = scope.pod is not None and scope.pod.state is not ProviderState.EXITED
    pod = f"pod {scope.pod_id}" + (f", billing {scope.price}" if bills else "")
    return replace(
        step,
        reason=reason,
        message=f"RunPod refuses to {str(refused.act).lower()} {pod}: {words(refused)}. The order is repeated; "
        f"{REMEDIES[reason]}",
        stalled=reason in FOR_A_PERSON,
        steady=False,
    )


def _start_is_due(scope: Scope, refused: RefusedAct) -> bool:
    """A refused start is given up and asked for again later: until then there is no intent."""
    stopped = scope.pod is not None and scope.pod.state is ProviderState.EXITED
    return refused.act is AttemptIntent.START and stopped and scope.spec.state is PodState.RUNNING


def words(refused: RefusedAct) -> str:
    """The vendor's own, and since when."""
    since = f" (since {refused.since:%Y-%m-%dT%H:%M:%SZ})" if refused.since is not None else ""
    return f"{refused.detail}{since}"


def reason_of(failure: str | None) -> Reason:
    """The condition's reason for a class of the provider port."""
    return next((reason for known, reason in REASONS.items() if known == failure), Reason.ACT_FAILED)
