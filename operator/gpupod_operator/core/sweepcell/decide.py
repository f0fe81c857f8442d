"""One decision about one SweepCell: what is known now, what has to be asked first, and when to look again. Pure."""

from __future__ import annotations

from dataclasses import replace

from gpupod_operator.api.phases import SweepCellPhase, VerificationState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.sweepcell.findings import Findings, held_outside, known_before
from gpupod_operator.core.sweepcell.finishing import finalizer_of
from gpupod_operator.core.sweepcell.landing import landed, missing_later, record
from gpupod_operator.core.sweepcell.looking import hub_due, next_look
from gpupod_operator.core.sweepcell.places import unsettled
from gpupod_operator.core.sweepcell.producing import back_to_pending, fresh_agent, settle_end, take_reading
from gpupod_operator.core.sweepcell.scope import AgentView, CellNeed, CellPlan, CellScope
from gpupod_operator.core.sweepcell.status import events_of, write_status
from gpupod_operator.core.sweepcell.uploading import follow_agent
from gpupod_operator.core.sweepcell.verifying import VerificationResult, verify


def decide_cell(scope: CellScope) -> CellPlan:
    """The plan of this pass. With `needs` nothing is decided yet: read those and ask again in the same pass.

    The status is equal to the old one when nothing has changed. The finalizer goes only on facts of this pass.
    """
    if hub_due(scope):
        return CellPlan(scope.status, scope.now, frozenset({CellNeed.HUB}))
    found, result = _find(scope)
    finalizer, why = finalizer_of(scope, result)
    status = write_status(scope, found, deletion_waits=scope.deleting and finalizer)
    after = replace(scope, status=status)
    return CellPlan(
        status=status,
        next_check=next_look(after),
        events=events_of(scope, status),
        finalizer=finalizer,
        finalizer_why=why,
    )


def _find(scope: CellScope) -> tuple[Findings, VerificationResult | None]:
    found = known_before(scope.status)
    if scope.overlapping is not None:
        why = f"its destination overlaps that of the older cell {scope.overlapping}; give one of the two another path"
        return replace(found, phase=SweepCellPhase.BLOCKED, reason=Reason.DESTINATION_CONFLICT, message=why), None
    if scope.not_built is not None:
        why = f"{scope.not_built} is not built yet and restricts what counts as verified; remove it"
        return replace(found, phase=SweepCellPhase.BLOCKED, reason=Reason.NOT_IMPLEMENTED_YET, message=why), None
    if unsettled(scope.spec, scope.status, scope.pod):
        return _settle(scope, found)
    found = take_reading(scope, back_to_pending(scope, found))
    result = _verify(scope, found)
    return _weigh(scope, found, result), result


def _settle(scope: CellScope, found: Findings) -> tuple[Findings, VerificationResult | None]:
    """The disk of the last reading is gone. Only an answer of the Hub may say what that means."""
    result = _verify(scope, found)
    if isinstance(scope.listing, Unknown):
        return replace(found, unknown=scope.listing.why), result
    if result is None:
        problem = scope.token_problem
        return replace(found, unknown=problem.message if problem is not None else "the Hub was not asked"), None
    if result.state is VerificationState.VERIFIED:
        return landed(scope, found, result), result
    return settle_end(scope, found, result.why), result


def _weigh(scope: CellScope, found: Findings, result: VerificationResult | None) -> Findings:
    """Hub before agent before problems before what was known."""
    agent = fresh_agent(scope)
    was_verified = scope.status.phase is SweepCellPhase.VERIFIED
    if result is not None and result.state is VerificationState.VERIFIED and not _rewriting(agent, was_verified):
        return landed(scope, found, result)
    if result is not None and result.state is VerificationState.UNKNOWN:
        found = replace(found, unknown=result.why)
    elif result is not None and was_verified and not _rewriting(agent, was_verified):
        return missing_later(scope, found, result)
    if was_verified and not _rewriting(agent, was_verified):
        return found
    problem = scope.token_problem or scope.hub_problem
    if problem is not None:
        return replace(
            found, phase=SweepCellPhase.BLOCKED, reason=problem.reason, message=problem.message, last_error=None
        )
    if held_outside(found) and not isinstance(scope.listing, Known):
        # Only an answer of the Hub shows that token and repository are good again.
        return found
    if agent is None or agent.cell is None:
        return _released(found)
    if found.reason is Reason.MISSING_NO_SOURCE and not agent.cell.done_seen:
        return found
    found = follow_agent(scope, found, agent.cell, result)
    committed = result is not None and result.state is not VerificationState.UNKNOWN and agent.cell.state == "Uploaded"
    return record(scope, found, result) if committed and result is not None else found


def _released(found: Findings) -> Findings:
    """Without a reading: a block whose cause is gone and was not the cell's own is no block any more."""
    freed = found.reason in (Reason.DESTINATION_CONFLICT, Reason.NOT_IMPLEMENTED_YET) or held_outside(found)
    if found.phase is not SweepCellPhase.BLOCKED or not freed:
        return found
    done = found.observation is not None and bool(found.observation.done_seen)
    phase, reason = (SweepCellPhase.PRODUCED, Reason.PRODUCED) if done else (SweepCellPhase.PENDING, Reason.PENDING)
    return replace(found, phase=phase, reason=reason, message="the cause of the block is gone")


def _rewriting(agent: AgentView | None, was_verified: bool) -> bool:
    """The agent has newer output than what it has committed; a cell verified before is not written twice."""
    if agent is None or agent.cell is None or not agent.cell.done_seen or was_verified:
        return False
    return agent.cell.state in ("Produced", "Uploading")


def _verify(scope: CellScope, found: Findings) -> VerificationResult | None:
    if scope.listing is None:
        return None
    expected = found.manifest.digest if found.manifest is not None else None
    if isinstance(scope.listing, Known) and expected is not None and not _vouched(scope, found):
        expected = None
    return verify(scope.spec, scope.listing, expected, cell_uid=scope.uid, commits=scope.commits)


def _vouched(scope: CellScope, found: Findings) -> bool:
    """The recorded digest is still the last word: the agent is in contact, or the cell was verified with it.

    Out of contact the agent may have committed a newer manifest; then the trailer of its commit has to vouch for it.
    """
    if fresh_agent(scope) is not None or scope.status.phase is SweepCellPhase.VERIFIED:
        return True
    return found.commit is not None
