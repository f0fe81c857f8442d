"""From the agent's word to a phase: where an upload stands, and what a person has to do about a refused one."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpupod_operator.api.phases import SweepCellPhase, VerificationState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.artifacts import AgentCell
from gpupod_operator.core.known import Known
from gpupod_operator.core.sweepcell.findings import Findings
from gpupod_operator.core.sweepcell.scope import CellScope
from gpupod_operator.core.sweepcell.verifying import VerificationResult

_PLAIN = {
    "Pending": (SweepCellPhase.PENDING, Reason.PENDING, "nothing of it is on the pod yet"),
    "Producing": (SweepCellPhase.PRODUCING, Reason.PRODUCING, "files are being written; no done file yet"),
    "Produced": (SweepCellPhase.PRODUCED, Reason.PRODUCED, "finished on the pod, waiting for its upload"),
    "Uploading": (SweepCellPhase.UPLOADING, Reason.UPLOADING, "the agent uploads it"),
    "Uploaded": (SweepCellPhase.UPLOADING, Reason.UPLOADED, "committed; the listing has to confirm it"),
    "Blocked": (SweepCellPhase.BLOCKED, Reason.UPLOAD_FAILED, "the upload is blocked"),
    "Failed": (SweepCellPhase.FAILED, Reason.UPLOAD_FAILED, "the upload fails and is tried again"),
}

_BY_CLASS = {
    "PathMissing": Reason.PATH_MISSING,
    "FilesMissing": Reason.PATH_MISSING,
    "SymlinkedDirectory": Reason.SYMLINKED_DIRECTORY,
    "DoneFileStale": Reason.STALE_DONE_FILE,
    "Unauthorized": Reason.HUB_UNAUTHORIZED,
    "TokenMissing": Reason.HUB_UNAUTHORIZED,
    "Forbidden": Reason.HUB_FORBIDDEN,
    "RepoNotFound": Reason.HUB_REPO_NOT_FOUND,
    "StorageQuota": Reason.QUOTA_EXCEEDED,
    "Mismatch": Reason.MISMATCH,
}
"""Classes of the agent's refusals (gpupod_cell) that have a word of their own; the others go by exit code."""

_BY_EXIT = {
    10: Reason.RATE_LIMITED,
    12: Reason.HUB_UNAUTHORIZED,
    13: Reason.QUOTA_EXCEEDED,
    14: Reason.ARTIFACT_REFUSED,
}

_LOOK_AT_HUB = {
    VerificationState.MISSING: (SweepCellPhase.PARTIAL, Reason.MISSING),
    VerificationState.PARTIAL: (SweepCellPhase.PARTIAL, Reason.PARTIAL),
    VerificationState.MISMATCH: (SweepCellPhase.BLOCKED, Reason.MISMATCH),
}


def follow_agent(scope: CellScope, found: Findings, cell: AgentCell, result: VerificationResult | None) -> Findings:
    """The phase by the agent's state; what it has committed is judged by the listing, once that is newer."""
    phase, reason, message = _PLAIN.get(cell.state, (found.phase, found.reason, found.message))
    error = cell.error_message or cell.error_class
    if cell.state in ("Blocked", "Failed") or (cell.state == "Producing" and cell.error_class is not None):
        reason = reason_of(cell)
        message = f"{message}: {error}" if error else message
    if cell.state == "Uploaded" and result is not None and result.state in _LOOK_AT_HUB and listed_after(scope, cell):
        phase, reason = _LOOK_AT_HUB[result.state]
        message = (
            f"{result.why}; nothing on the Hub is overwritten unasked"
            if phase is SweepCellPhase.BLOCKED
            else result.why
        )
    return replace(found, phase=phase, reason=reason, message=message, last_error=error)


def reason_of(cell: AgentCell) -> Reason:
    """The one word for a refusal of the agent."""
    by_class = _BY_CLASS.get(cell.error_class or "")
    if by_class is not None:
        return by_class
    return _BY_EXIT.get(cell.error_exit or 0, Reason.UPLOAD_FAILED)


def listed_after(scope: CellScope, cell: AgentCell) -> bool:
    """The listing is newer than the agent's commit, so that it must show it."""
    at: datetime | None = cell.commit_at
    return isinstance(scope.listing, Known) and (at is None or scope.listing.value.at >= at)
