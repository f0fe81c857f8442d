"""From the Hub's side: a verified cell, a cell that was lost from the Hub later, and the verdict as status."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpupod_operator.api.phases import SweepCellPhase, VerificationState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import CommitStatus, ManifestStatus, VerificationStatus
from gpupod_operator.core.sweepcell.findings import Findings
from gpupod_operator.core.sweepcell.places import Place, place_of
from gpupod_operator.core.sweepcell.scope import CellScope
from gpupod_operator.core.sweepcell.verifying import VerificationResult


def landed(scope: CellScope, found: Findings, result: VerificationResult) -> Findings:
    """Verified: manifest and commit as the Hub shows them."""
    manifest, commit = found.manifest, found.commit
    if result.manifest is not None:
        manifest = ManifestStatus(
            digest=result.manifest.digest,
            files=len(result.manifest.files),
            bytes=result.manifest.size,
            taken_at=result.manifest.taken_at,
            attempt=result.manifest.attempt,
        )
    if result.trailers is not None and (commit is None or commit.oid != result.trailers.oid):
        commit = CommitStatus(oid=result.trailers.oid, at=result.trailers.at)
    return replace(
        record(scope, found, result),
        phase=SweepCellPhase.VERIFIED,
        reason=Reason.VERIFIED,
        message=f"{result.verified} files are on the Hub with equal size and hash",
        manifest=manifest,
        commit=commit,
        last_error=None,
    )


def missing_later(scope: CellScope, found: Findings, result: VerificationResult) -> Findings:
    """It was verified and is not any more. With its files still on the pod it is uploaded again, else nobody can."""
    if result.state is VerificationState.MISMATCH:
        return replace(
            record(scope, found, result),
            phase=SweepCellPhase.BLOCKED,
            reason=Reason.MISMATCH,
            message=f"{result.why}; nothing on the Hub is overwritten unasked",
        )
    if source_here(scope, found):
        return replace(
            record(scope, found, result),
            phase=SweepCellPhase.PARTIAL,
            reason=Reason.MISSING,
            message=f"{result.why}; the agent uploads what is missing",
        )
    return replace(
        record(scope, found, result),
        phase=SweepCellPhase.BLOCKED,
        reason=Reason.MISSING_NO_SOURCE,
        message=f"{result.why}, and no pod has its files any more: restore them on the Hub, or delete the cell",
        observation=None if place_of(found.observation, scope.pod) is Place.PAST else found.observation,
    )


def record(scope: CellScope, found: Findings, result: VerificationResult) -> Findings:
    """The verdict as status; an equal one keeps its time and head, so that an unchanged world writes nothing."""
    before = found.verification
    after = _verification(result, scope.now)
    if before is not None and before.model_copy(update={"since": None, "head": None}) == after.model_copy(
        update={"since": None, "head": None}
    ):
        after = before
    return replace(found, verification=after)


def source_here(scope: CellScope, found: Findings) -> bool:
    """The finished files are on the present start of the present pod."""
    seen, pod, finished = found.observation, scope.pod, found.finished
    if place_of(seen, pod) is not Place.HERE:
        return False
    accepted = finished is not None and finished.pod_id == pod.pod_id and finished.pod_started_at == pod.started_at
    return bool(seen is not None and seen.done_seen) or accepted


def _verification(result: VerificationResult, now: datetime) -> VerificationStatus:
    return VerificationStatus(
        state=result.state,
        head=result.head,
        since=now,
        verified=result.verified,
        missing=result.missing or None,
        mismatched=result.mismatched or None,
    )
