"""The pod is reachable: the agent and the workload are put on it, once per (pod id, start), and confirmed."""

from __future__ import annotations

from gpupod_operator.api.gpupod_status import AttemptIntent, WorkloadState, WorkloadStatus
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.agent import place_agent
from gpupod_operator.core.gpupod.launches import own_launch, started_before
from gpupod_operator.core.gpupod.scope import Act, Ask, Scope, Step, Wait
from gpupod_operator.core.plan import LaunchWorkload, Need
from gpupod_operator.core.shell import LaunchRecord, SshClass

ALIVE = (WorkloadState.STARTING, WorkloadState.RUNNING, WorkloadState.UNKNOWN)


def place(scope: Scope) -> Step | None:
    """Agent first, then the workload. None: everything that was asked for is on the pod."""
    reading = scope.facts.shell
    if reading is None or reading.ssh is not SshClass.OK:
        _unreadable(scope)
        return None
    step = place_agent(scope)
    if step is not None:
        return step
    return _workload(scope)


def _workload(scope: Scope) -> Step | None:
    pod, attempt, reading, target = scope.pod, scope.status.attempt, scope.facts.shell, scope.target()
    assert pod is not None and attempt is not None and reading is not None
    command = scope.spec.workload.command
    if not command:
        scope.condition("WorkloadRunning", False, Reason.NO_WORKLOAD, "spec.workload.command is not set")
        return None
    if attempt.intent is AttemptIntent.DRAIN:
        return None
    state = scope.status.workload
    launched = attempt.launched_start is not None and attempt.launched_start == pod.started_at
    start = pod.started_at.strftime("%Y%m%dT%H%M%S") if pod.started_at else "first"
    launch_id = own_launch(scope) or f"{pod.id}-{start}"
    # a launch that ended before the second session looked is a launch all the same: never a second one
    mine = next((r for r in reading.launches or () if r.launch_id == launch_id), None)
    if mine is not None and not launched:
        _confirmed(scope, mine)
        return _follow(scope, reading.launches)
    live = _live(reading.launches)
    if live is not None and (not launched or (state is not None and state.state is not WorkloadState.RUNNING)):
        return _confirmed(scope, live)
    if launched:
        return _follow(scope, reading.launches)
    if state is not None and state.state is WorkloadState.START_FAILED and state.pod_started_at == pod.started_at:
        scope.condition("WorkloadRunning", False, Reason.START_FAILED, state.last_error or "the launch failed")
        return Wait(
            Reason.START_FAILED,
            f"the workload could not be started on pod {pod.id}: {(state.last_error or '')[:300]}. The pod stays up "
            f"for a look and bills {scope.price}. Correct workload.command or workload.check, then migrate or stop it",
            stalled=True,
        )
    if reading.launches is None:
        scope.condition("WorkloadRunning", None, Reason.WORKLOAD_UNKNOWN, "the launch records cannot be read")
        return None
    if not scope.facts.visited_now:
        return Ask(frozenset({Need.SHELL}))
    if target is None:
        return None
    scope.put_attempt(intent=AttemptIntent.LAUNCH, intent_time=scope.now)
    scope.condition("WorkloadRunning", None, Reason.LAUNCHING, f"being launched on pod {pod.id}")
    scope.put(
        workload=WorkloadStatus(
            state=WorkloadState.STARTING, pod_id=pod.id, pod_started_at=pod.started_at, launch_id=launch_id
        )
    )
    return Act(
        LaunchWorkload(
            target,
            attempt.id or "",
            launch_id,
            pod.started_at.isoformat() if pod.started_at else "",
            tuple(command),
            tuple(scope.spec.workload.check),
            scope.spec.workload.log_file,
        ),
        Reason.STARTING,
        f"launching the workload on pod {pod.id}",
    )


def _live(launches: tuple[LaunchRecord, ...] | None) -> LaunchRecord | None:
    """A launch whose process is alive, whichever attempt recorded it: never a second start beside it."""
    return next((r for r in launches or () if r.alive is True and r.exit_code is None), None)


def _confirmed(scope: Scope, record: LaunchRecord) -> Step | None:
    """A second session saw the launch alive."""
    pod, attempt = scope.pod, scope.status.attempt
    assert pod is not None and attempt is not None
    scope.put_attempt(
        launched_start=pod.started_at,
        launch_confirmed=True,
        intent=AttemptIntent.NONE if attempt.intent is AttemptIntent.LAUNCH else attempt.intent,
        intent_time=None,
    )
    scope.put(
        workload=WorkloadStatus(
            state=WorkloadState.RUNNING,
            pid=record.pid,
            started_at=record.started_at or started_before(scope, record) or scope.now,
            pod_id=pod.id,
            pod_started_at=pod.started_at,
            launch_id=record.launch_id,
        )
    )
    scope.condition("WorkloadRunning", True, Reason.RUNNING, f"pid {record.pid} on pod {pod.id}")
    return None


def _follow(scope: Scope, launches: tuple[LaunchRecord, ...] | None) -> Step | None:
    """A launch of this start: done needs an exit record and a dead pid; unreadable is unknown."""
    state, pod = scope.status.workload, scope.pod
    assert pod is not None
    if state is None or launches is None:
        scope.condition("WorkloadRunning", None, Reason.WORKLOAD_UNKNOWN, "the launch records cannot be read")
        return None
    record = next((r for r in launches if r.launch_id == state.launch_id), None)
    if record is None:
        scope.condition("WorkloadRunning", None, Reason.WORKLOAD_UNKNOWN, "no record of the launch on the pod")
        return None
    if record.alive is True:
        scope.condition("WorkloadRunning", True, Reason.RUNNING, f"pid {record.pid} on pod {pod.id}")
        return None
    if record.alive is None:
        scope.put(workload=state.model_copy(update={"state": WorkloadState.UNKNOWN}))
        scope.condition("WorkloadRunning", None, Reason.WORKLOAD_UNKNOWN, "the process cannot be read")
        return None
    success = record.exit_code == 0
    new = WorkloadState.SUCCEEDED if success else WorkloadState.FAILED
    if state.state is not new:
        ended = state.ended_at or scope.now
        error = None if success else f"exit code {record.exit_code}" if record.exit_code is not None else "died"
        scope.put(
            workload=state.model_copy(
                update={"state": new, "exit_code": record.exit_code, "last_error": error, "ended_at": ended}
            )
        )
    reason = Reason.SUCCEEDED if success else Reason.FAILED
    scope.condition("WorkloadRunning", False, reason, f"exit code {record.exit_code}")
    return None


def _unreadable(scope: Scope) -> None:
    """No healthy session: the workload is unknown, never dead."""
    state = scope.status.workload
    if state is not None and state.state in ALIVE:
        scope.condition("WorkloadRunning", None, Reason.WORKLOAD_UNKNOWN, "the pod cannot be visited")
