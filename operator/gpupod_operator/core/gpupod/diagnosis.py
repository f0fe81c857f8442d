"""A workload that failed to start, or failed, keeps its pod up for a look, for a bounded time."""

from __future__ import annotations

from gpupod_operator.api.gpupod_status import DiagnosisStatus, Receipt, WorkloadState
from gpupod_operator.api.policies import EndPolicy
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import DrainFirst, GateReason
from gpupod_operator.core.gpupod import migration, permission, stopping
from gpupod_operator.core.gpupod.draining import drain
from gpupod_operator.core.gpupod.scope import Scope, Step, Wait


def keep_window(scope: Scope) -> Step | None:
    """Open, keep, close or expire the window. A person (owner and until) extends it; expiry goes through the gate."""
    why = _failure(scope)
    if why is None:
        if scope.status.diagnosis is not None:
            scope.put(diagnosis=None)
        return None
    window = scope.status.diagnosis
    since = window.since if window is not None and window.since is not None else scope.now
    until = since + scope.spec.diagnosis.ttl
    owner = scope.spec.diagnosis.owner
    if scope.spec.diagnosis.until is not None and owner is not None:
        until = max(until, scope.spec.diagnosis.until)
    scope.put(diagnosis=DiagnosisStatus(since=since, until=until, owner=owner))
    if scope.now < until:
        return Wait(
            Reason.START_FAILED if why.startswith("start") else Reason.FAILED,
            f"the workload on pod {scope.pod_id} failed ({why}); the pod stays up for a look until "
            f"{until:%Y-%m-%dT%H:%M:%SZ} and bills {scope.price}. Then it is ended by diagnosis.onExpiry "
            f"({scope.spec.diagnosis.on_expiry})",
            until=until,
            stalled=True,
        )
    if scope.spec.diagnosis.on_expiry is EndPolicy.STOP:
        return stopping.stop(scope, GateReason.EXPIRE, f"the diagnosis window is over ({why})")
    verdict = permission.ask(scope, GateReason.EXPIRE)
    if isinstance(verdict, DrainFirst):
        return drain(scope, verdict)
    if not isinstance(verdict, Receipt):
        return verdict
    return migration.delete(scope, verdict, f"the diagnosis window is over ({why})")


def _idle(scope: Scope) -> bool:
    """Nothing is on its way any more: the agent was read after the workload's end and shows nothing to upload.

    A cell that it has uploaded and that is not verified yet is on its way, too.
    """
    workload, reading, cells = scope.status.workload, scope.facts.shell, scope.status.cells
    if workload is None or workload.ended_at is None or reading is None or reading.agent is None or cells is None:
        return False
    settled = reading.agent.heartbeat is not None and reading.agent.heartbeat > workload.ended_at
    busy = any(c.state in ("Produced", "Uploading") for c in reading.agent.cells.values())
    uploaded = sum(c.state == "Uploaded" for c in reading.agent.cells.values())
    return settled and not busy and not cells.in_flight and uploaded <= (cells.verified or 0)


def _failure(scope: Scope) -> str | None:
    workload = scope.status.workload
    if workload is None or workload.pod_id != scope.pod_id:
        return None
    if workload.state is WorkloadState.START_FAILED:
        return f"start: {(workload.last_error or 'unknown')[:200]}"
    if workload.state is WorkloadState.FAILED:
        return workload.last_error or "failed"
    cells = scope.status.cells
    done = workload.state is WorkloadState.SUCCEEDED
    if done and cells is not None and cells.declared and cells.verified != cells.declared and _idle(scope):
        return f"it succeeded, but only {cells.summary} cells are on the Hub (CellsNotProduced)"
    return None
