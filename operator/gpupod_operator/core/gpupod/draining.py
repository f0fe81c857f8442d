"""Drain: ask the workload to end, recorded as an intent first, and let the agent finish what is produced."""

from __future__ import annotations

from gpupod_operator.api.gpupod_status import AttemptIntent
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import DrainFirst
from gpupod_operator.core.gpupod.launches import renew_launch
from gpupod_operator.core.gpupod.scope import Act, Scope, Step, Wait
from gpupod_operator.core.plan import DrainWorkload


def drain(scope: Scope, verdict: DrainFirst) -> Step:
    """One DrainWorkload per intent; afterwards wait until the agent shows nothing Produced or Uploading."""
    attempt, target = scope.status.attempt, scope.target()
    assert attempt is not None
    if target is None:
        return Wait(Reason.CELLS_UNKNOWN, f"{verdict.why}; pod {scope.pod_id} has no endpoint to drain it over")
    if attempt.intent is AttemptIntent.DRAIN and attempt.drained:
        scope.wake_in(scope.policy.observe_every)
        return Wait(
            Reason.DRAINING,
            f"pod {scope.pod_id} is drained; waiting until the agent has uploaded what was finished: {verdict.why}",
        )
    began = attempt.intent_time if attempt.intent is AttemptIntent.DRAIN else None
    # of this drain and no older intent: the gate takes the workload for ended a minute after it
    scope.put_attempt(intent=AttemptIntent.DRAIN, intent_time=began or scope.now, drained=None)
    return Act(
        DrainWorkload(target, attempt.id or "", verdict.why),
        Reason.DRAINING,
        f"ending the workload on pod {scope.pod_id} so that finished cells can be uploaded: {verdict.why}",
    )


def withdraw_drain(scope: Scope) -> None:
    """The reason is gone: the workload is launched again for this start."""
    attempt = scope.status.attempt
    if attempt is not None and attempt.intent is AttemptIntent.DRAIN:
        renew_launch(scope)
        scope.put_attempt(intent=AttemptIntent.NONE, intent_time=None, drained=None, launched_start=None)
