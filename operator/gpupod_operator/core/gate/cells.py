"""The gate's table, one cell at a time. The rows are named as in the design; the order of the checks is the law.

Only what was read in this pass can make a cell fine; what was known before can only hold it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpupod_operator.api.phases import SweepCellPhase, VerificationState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.artifacts import AgentCell
from gpupod_operator.core.gate.inflight import judge_in_flight
from gpupod_operator.core.gate.question import CellFacts, GateQuestion
from gpupod_operator.core.gate.standings import CellStanding, Outcome, Standing
from gpupod_operator.core.gate.survival import cell_paths, survives, wiped_by_stop
from gpupod_operator.core.gate.visits import Visit, VisitState
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.provider import ProviderPod
from gpupod_operator.core.sweepcell.verifying import VerificationResult, verify

_UPLOADING_STATES = frozenset({"Produced", "Uploading", "Uploaded"})
_FINISHED_PHASES = frozenset({SweepCellPhase.PRODUCED, SweepCellPhase.UPLOADING, SweepCellPhase.PARTIAL})


def abandon_edit(q: GateQuestion) -> str:
    """The edit by which a person gives a cell's data up, bound to this pod."""
    return f'or give it up: annotate gpupod.dev/abandon-data: "{q.pod_id}: <why>"'


def stands_alone(q: GateQuestion, pod: ProviderPod, cell: CellFacts) -> CellStanding | None:
    """A standing that needs neither a visit nor the Hub: abandoned, on a surviving volume; else None."""
    if cell.abandoned is not None:
        evidence = {"abandoned": cell.abandoned}
        return CellStanding(cell.name, Standing.FINE, "given up", Outcome.ABANDONED, evidence=evidence)
    if survives(q, pod, cell.spec):
        evidence = {"survives": ", ".join(cell_paths(cell.spec))}
        return CellStanding(cell.name, Standing.FINE, "lies on a surviving volume", Outcome.KEPT, evidence=evidence)
    return None


def stand(q: GateQuestion, pod: ProviderPod, visit: Visit, cell: CellFacts) -> CellStanding:
    """The standing of a cell whose listing (and visit, where one was possible) is there."""
    result = verify(cell.spec, cell.listing, expected_digest(visit, cell), cell_uid=cell.uid, commits=cell.commits)
    agent = cell.agent if visit.bound else None
    at_rest = agent is None or agent.state not in ("Produced", "Uploading")
    if result.state is VerificationState.VERIFIED and at_rest and _newer_than_writes(cell, agent):
        return _verified(cell, result)
    if wiped_by_stop(q, pod, cell.spec):
        return _wiped(q, cell)
    if isinstance(cell.listing, Unknown):
        return _unknown(cell, f"the Hub cannot be read: {cell.listing.why}", Reason.HUB_UNAVAILABLE)
    if agent is not None and (agent.done_seen or agent.state in _UPLOADING_STATES):
        return _finished_here(q, visit, cell, agent, result)
    if visit.state is VisitState.REACHABLE:
        return _unfinished_here(q, visit, cell)
    if visit.state is VisitState.SILENT:
        return _unknown(cell, visit.why, Reason.AGENT_UNAVAILABLE)
    return _out_of_contact(q, pod, visit, cell, result)


def expected_digest(visit: Visit, cell: CellFacts) -> str | None:
    """The digest that the manifest must hash to: the agent's of this pass, else the one recorded before."""
    if visit.bound and cell.agent is not None and cell.agent.done_seen and cell.agent.manifest_digest is not None:
        return cell.agent.manifest_digest
    return cell.status.manifest.digest if cell.status.manifest is not None else None


def _newer_than_writes(cell: CellFacts, agent: AgentCell | None) -> bool:
    """The listing is newer than every write to the cell that we know of."""
    if not isinstance(cell.listing, Known):
        return False
    recorded = cell.status.commit.at if cell.status.commit is not None else None
    writes: list[datetime | None] = [recorded, agent.commit_at if agent is not None else None]
    return all(write is None or cell.listing.value.at >= write for write in writes)


def _verified(cell: CellFacts, result: VerificationResult) -> CellStanding:
    manifest = result.manifest
    evidence = {
        "verified": result.verified,
        "head": result.head,
        "manifest": manifest.digest if manifest is not None else None,
        "commit": result.trailers.oid if result.trailers is not None else None,
        "repo": cell.spec.destination.repo,
        "path": cell.spec.destination.path,
    }
    return CellStanding(cell.name, Standing.FINE, result.why, Outcome.VERIFIED, evidence=evidence)


def _wiped(q: GateQuestion, cell: CellFacts) -> CellStanding:
    seen = cell.status.observation
    finished = seen is not None and seen.pod_id == q.pod_id and bool(seen.done_seen)
    lost = finished or cell.status.phase is SweepCellPhase.LOST
    why = "lay on the container disk, which the stop took"
    outcome = Outcome.LOST if lost else Outcome.UNFINISHED
    return CellStanding(cell.name, Standing.FINE, why, outcome, evidence={"wiped": True, "finished": lost})


def _unknown(cell: CellFacts, why: str, reason: Reason = Reason.CELLS_UNKNOWN) -> CellStanding:
    return CellStanding(cell.name, Standing.UNKNOWN, f"cell {cell.name}: {why}", reason=reason)


def _blocks(q: GateQuestion, cell: CellFacts, cause: str, result: VerificationResult, fix: str = "") -> CellStanding:
    edit = ", ".join(part for part in (fix, abandon_edit(q)) if part)
    return CellStanding(
        cell.name,
        Standing.BLOCKS,
        f"cell {cell.name} is finished and not verified: {cause}",
        edit=edit,
        missing=result.missing,
        mismatched=result.mismatched,
    )


def _finished_here(
    q: GateQuestion, visit: Visit, cell: CellFacts, agent: AgentCell, result: VerificationResult
) -> CellStanding:
    if agent.state in ("Failed", "Blocked"):
        said = agent.error_message or agent.error_class or "no cause given"
        return _blocks(q, cell, f"the upload is {agent.state.lower()}: {said}", result, "repair the cause")
    settled = agent.state == "Uploaded" and _newer_than_writes(cell, agent)
    if settled and result.state in (VerificationState.PARTIAL, VerificationState.MISMATCH, VerificationState.MISSING):
        return _blocks(q, cell, result.why, result, "repair the files on the Hub")
    if visit.state is not VisitState.REACHABLE:
        return _blocks(q, cell, f"done file seen, and {visit.why}", result)
    standing = _blocks(q, cell, f"the agent has it as {agent.state}; {result.why}", result, "wait for the upload")
    return replace(standing, standing=Standing.UPLOADING, reason=Reason.UPLOADING)


def _unfinished_here(q: GateQuestion, visit: Visit, cell: CellFacts) -> CellStanding:
    agent, seen = cell.agent, cell.status.observation
    if agent is None:
        return _unknown(cell, f"the agent on pod {q.pod_id} does not list it yet")
    same_start = seen is not None and seen.pod_id == q.pod_id and seen.pod_started_at in (None, visit.pod_started_at)
    if same_start and seen is not None and seen.done_seen:
        return _unknown(cell, "its done file was seen and is gone now; it is read once more")
    evidence = {"agent": agent.state, "doneSeen": False}
    return CellStanding(
        cell.name,
        Standing.UNFINISHED,
        f"cell {cell.name} is not finished ({agent.state})",
        Outcome.UNFINISHED,
        reason=Reason.CELLS_IN_FLIGHT,
        edit=abandon_edit(q),
        producing=agent.state == "Producing",
        evidence=evidence,
    )


def _out_of_contact(
    q: GateQuestion, pod: ProviderPod, visit: Visit, cell: CellFacts, result: VerificationResult
) -> CellStanding:
    seen = cell.status.observation
    if seen is None or seen.pod_id != q.pod_id or seen.done_seen is None:
        return _unknown(cell, f"never read on pod {q.pod_id}, and {visit.why}")
    if seen.done_seen or cell.status.phase in _FINISHED_PHASES:
        return _blocks(q, cell, f"last seen as {cell.status.phase}; {result.why}; {visit.why}", result)
    if result.state in (VerificationState.PARTIAL, VerificationState.MISMATCH):
        return _blocks(q, cell, f"{result.why}; {visit.why}", result)
    if result.state is not VerificationState.MISSING:
        return _unknown(cell, f"{result.why}, and {visit.why}")
    return judge_in_flight(q, pod, cell, seen)
