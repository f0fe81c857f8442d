"""Launches by id: one per start, and another one when the work is launched again within a start."""

from __future__ import annotations

from datetime import datetime

from gpupod_operator.api.gpupod_status import WorkloadState, WorkloadStatus
from gpupod_operator.core.gpupod.scope import Scope
from gpupod_operator.core.shell import LaunchRecord, SshClass


def own_launch(scope: Scope) -> str | None:
    """The launch id on record for this start: a relaunch within one start has an id of its own."""
    pod, state = scope.pod, scope.status.workload
    same = pod is not None and state is not None and (state.pod_id, state.pod_started_at) == (pod.id, pod.started_at)
    return state.launch_id if same and state is not None else None


def renew_launch(scope: Scope) -> None:
    """The next launch of this start is another one than the one that was ended: no record of that answers for it."""
    state = scope.status.workload
    if state is None or state.launch_id is None:
        return
    base, mark, count = state.launch_id.rpartition(".r")
    again = f"{base}.r{int(count) + 1}" if mark and count.isdigit() else f"{state.launch_id}.r2"
    scope.put(
        workload=WorkloadStatus(
            state=WorkloadState.NOT_STARTED,
            pod_id=state.pod_id,
            pod_started_at=state.pod_started_at,
            launch_id=again,
            ended_at=state.ended_at,
        )
    )


def note_end(scope: Scope) -> None:
    """A visit of this pass shows the launch dead: that it ended is on record from then, whoever ended it.

    A drain whose answer got lost with its process would else be waited for as if it had just begun.
    """
    state, reading = scope.status.workload, scope.facts.shell
    if state is None or state.ended_at is not None or state.launch_id is None or state.pod_id != scope.pod_id:
        return
    if not scope.facts.visited_now or reading is None or reading.ssh is not SshClass.OK or not reading.launches:
        return
    mine = any(record.launch_id == state.launch_id for record in reading.launches)
    if mine and all(record.alive is False for record in reading.launches):
        scope.put(workload=state.model_copy(update={"ended_at": scope.now}))


def workload_over(scope: Scope) -> bool:
    """It ended by itself, or never started: what drains the pod then is the end of the work, not its interruption."""
    state = scope.status.workload
    return state is not None and state.state in (
        WorkloadState.SUCCEEDED,
        WorkloadState.FAILED,
        WorkloadState.START_FAILED,
    )


def started_before(scope: Scope, record: LaunchRecord) -> datetime | None:
    """When this very launch was first seen, if its record does not say so."""
    state = scope.status.workload
    return state.started_at if state is not None and state.launch_id == record.launch_id else None
