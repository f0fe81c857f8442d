"""`spend.unlaunchedAfter`: a pod has been Ready for that long and nothing was launched on it. Told once per start."""

from __future__ import annotations

from gpupod_operator.api.conditions import ConditionType, find_condition
from gpupod_operator.api.gpupod_status import WorkloadState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.scope import Scope


def note_unlaunched(scope: Scope) -> None:
    """Sets `WorkloadRunning=False/Unlaunched`, with the price, until something is launched on this start of the pod.

    The clock runs while the pod is Ready. It also runs where no workload is declared: such a pod bills like any other,
    and who wants one for working by hand sets a longer time. A launch that failed has a window and words of its own.
    """
    attempt, pod = scope.status.attempt, scope.status.pod
    ready = scope.conditions.get("Ready", ("",))[0] == "True"
    if attempt is None or pod is None or not ready or _launched(scope):
        return
    start = pod.started_at or attempt.created_at
    if start is None or attempt.unlaunched_start != start:
        before = find_condition(scope.before.conditions, ConditionType.READY)
        since = before.last_transition_time if before is not None and before.status == "True" else scope.now
        due = since + scope.spec.spend.unlaunched_after
        if scope.now < due:
            scope.wake_at(due)
            return
        scope.put_attempt(unlaunched_start=start)
    wanted = "workload.command is not set" if not scope.spec.workload.command else "the workload is not launched"
    scope.condition(
        "WorkloadRunning",
        False,
        Reason.UNLAUNCHED,
        f"pod {scope.pod_id} has been Ready for spend.unlaunchedAfter without a launch and bills {scope.price}: "
        f"{wanted}. Launch something, or stop or delete the pod",
    )


def _launched(scope: Scope) -> bool:
    attempt, workload, pod = scope.status.attempt, scope.status.workload, scope.status.pod
    assert attempt is not None and pod is not None
    if workload is not None and workload.state is WorkloadState.START_FAILED:
        return True
    return attempt.launched_start is not None and attempt.launched_start == pod.started_at
