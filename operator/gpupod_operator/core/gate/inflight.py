"""Cells that were being computed when contact was lost: how long to wait, and what proves the agent alive."""

from __future__ import annotations

from datetime import datetime

from gpupod_operator.api.policies import InFlightPolicy
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import Observation
from gpupod_operator.core.gate.question import CellFacts, GateQuestion
from gpupod_operator.core.gate.standings import CellStanding, Outcome, Standing
from gpupod_operator.core.gate.survival import workload_is_ours
from gpupod_operator.core.known import Known
from gpupod_operator.core.provider import ProviderPod, ProviderState
from gpupod_operator.core.sweepcell.manifests import find_trailers


def judge_in_flight(q: GateQuestion, pod: ProviderPod, cell: CellFacts, seen: Observation) -> CellStanding:
    """Out of contact, last read without a done file, nothing on the Hub: may it be computed again?"""
    if q.spec.remediation.in_flight is InFlightPolicy.BLOCK:
        return _waits(cell, "is in flight and remediation.inFlight is Block", "set remediation.inFlight: Rerun")
    if not _same_start(q, pod, seen):
        why = f"cell {cell.name}: not read since pod {q.pod_id} was started again"
        return CellStanding(cell.name, Standing.UNKNOWN, why, reason=Reason.CELLS_UNKNOWN)
    evidence = {"lastState": seen.state, "since": seen.since.isoformat() if seen.since is not None else None}
    if pod.state is ProviderState.EXITED:
        # Nothing runs on a stopped pod, so there is nothing to wait for.
        return CellStanding(
            cell.name, Standing.FINE, "in flight when the pod stopped", Outcome.UNFINISHED, evidence=evidence
        )
    lost = q.contact_lost_at
    if lost is None:
        why = f"cell {cell.name}: contact was lost just now"
        return CellStanding(cell.name, Standing.UNKNOWN, why, reason=Reason.CELLS_UNKNOWN)
    until = lost + cell.spec.upload.progress_deadline
    if q.now <= until:
        return _waits(cell, f"is in flight; its agent has until {until:%H:%M:%SZ} to show it on the Hub", "wait")
    return CellStanding(
        cell.name,
        Standing.FINE,
        "in flight when contact was lost",
        Outcome.UNFINISHED,
        in_flight=True,
        evidence={**evidence, "contactLostAt": lost.isoformat()},
    )


def proof_of_life(q: GateQuestion, cells: tuple[CellFacts, ...]) -> str:
    """Half a sentence for receipt and condition: is the agent alive without us, and how long we were out of contact."""
    lost = q.contact_lost_at
    if lost is None:
        return ""
    minutes = int((q.now - lost).total_seconds() // 60)
    commits = [found for cell in cells if (found := _commit_after(cell, lost)) is not None]
    if commits:
        oid, at = max(commits, key=lambda c: c[1])
        return f"out of contact for {minutes} min; commit {oid} at {at:%H:%M:%SZ} shows the agent alive"
    return f"out of contact for {minutes} min; no commit since shows the agent alive"


def _commit_after(cell: CellFacts, lost: datetime) -> tuple[str, datetime] | None:
    if not isinstance(cell.commits, Known):
        return None
    found = find_trailers(cell.commits.value, cell.uid)
    if found is None or found.at is None or found.at <= lost:
        return None
    return found.oid, found.at


def _same_start(q: GateQuestion, pod: ProviderPod, seen: Observation) -> bool:
    """The reading is of the present start, or nothing that writes cells was started since."""
    if pod.started_at is None or seen.pod_started_at is None or pod.started_at == seen.pod_started_at:
        return True
    launched = q.status.attempt.launched_start if q.status.attempt is not None else None
    return workload_is_ours(q) and launched != pod.started_at


def _waits(cell: CellFacts, why: str, edit: str) -> CellStanding:
    return CellStanding(cell.name, Standing.BLOCKS, f"cell {cell.name} {why}", reason=Reason.CELLS_IN_FLIGHT, edit=edit)
