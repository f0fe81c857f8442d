"""The pod is reachable: the agent and the workload are put on it, once per (pod id, start), and confirmed."""

from __future__ import annotations

import hashlib
import json

from gpupod_operator.api.gpupod_status import AttemptIntent, WorkloadState, WorkloadStatus
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import CellFacts
from gpupod_operator.core.gpupod.launches import own_launch, started_before
from gpupod_operator.core.gpupod.scope import Act, Ask, Scope, Step, Wait
from gpupod_operator.core.known import Known
from gpupod_operator.core.plan import InstallAgent, LaunchWorkload, Need
from gpupod_operator.core.shell import LaunchRecord, SshClass
from gpupod_operator.core.sweepcell.cells_json import CellOrder, cells_json

ALIVE = (WorkloadState.STARTING, WorkloadState.RUNNING, WorkloadState.UNKNOWN)


def place(scope: Scope) -> Step | None:
    """Agent first, then the workload. None: everything that was asked for is on the pod."""
    reading = scope.facts.shell
    if reading is None or reading.ssh is not SshClass.OK:
        _unreadable(scope)
        return None
    step = _agent(scope)
    if step is not None:
        return step
    return _workload(scope)


def _agent(scope: Scope) -> Step | None:
    """Install when this start has none yet, it is not running, its tree differs, or its input changed."""
    if not scope.facts.declared_cells:
        return None
    pod, attempt, reading, target = scope.pod, scope.status.attempt, scope.facts.shell, scope.target()
    assert pod is not None and attempt is not None and reading is not None
    if target is None:
        return None
    if scope.facts.cells is None:
        return Ask(frozenset({Need.CELLS}))
    if not isinstance(scope.facts.cells, Known):
        return None
    digest = cells_digest(scope.facts.cells.value)
    agent = reading.agent
    current = (
        attempt.agent_start == pod.started_at
        and attempt.cells_digest == digest
        and agent is not None
        and agent.running
        and agent.tree_hash == scope.facts.agent_tree
    )
    if current:
        return None
    installed = attempt.agent_start == pod.started_at and attempt.agent_start is not None
    if installed and attempt.cells_digest == digest and not scope.facts.new_list:
        # an agent that does not come up is installed again once a tick and not in a busy loop; the work need not wait
        scope.wake_in(scope.policy.observe_every)
        return None
    if not scope.facts.visited_now:
        # the reading may be older than our own install: look again before installing twice
        return Ask(frozenset({Need.SHELL}))
    if agent is not None and agent.problem is not None and attempt.cells_digest == digest:
        scope.condition("ArtifactsSafe", None, Reason.AGENT_UNAVAILABLE, agent.problem)
        return None
    listed = relisted(scope)
    if listed is not None:
        return listed
    orders = [CellOrder(scope.identity.namespace, c.name, c.uid, c.spec, c.status) for c in scope.facts.cells.value]
    cells = cells_json(pod.id, attempt.id or "", orders)
    return Act(
        InstallAgent(target, attempt.id or "", cells, digest),
        Reason.STARTING,
        f"putting the cell agent on pod {pod.id} ({len(scope.facts.cells.value)} cells)",
    )


def relisted(scope: Scope) -> Step | None:
    """Before a relaunch every unverified cell is listed again: what landed meanwhile is adopted, not re-run."""
    if scope.status.migration is None or scope.status.migration.step is None or scope.facts.listed_cells:
        return None
    return Ask(frozenset({Need.LISTINGS}))


def cells_digest(cells: tuple[CellFacts, ...]) -> str:
    """Of which cells there are and what is to be uploaded where; progress does not change it."""
    parts = sorted((c.uid, c.spec.model_dump_json(by_alias=True)) for c in cells)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


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
