"""What a decision found out about a cell, before it is written as conditions."""

from __future__ import annotations

from dataclasses import dataclass

from gpupod_operator.api.phases import SweepCellPhase
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import (
    CommitStatus,
    FinishedStatus,
    ManifestStatus,
    Observation,
    SweepCellStatus,
    VerificationStatus,
)


@dataclass(frozen=True, slots=True)
class Findings:
    """The facts of the new status. `unknown` is why the Hub could not be asked or believed in this pass, or None."""

    phase: SweepCellPhase
    reason: Reason
    message: str
    observation: Observation | None = None
    finished: FinishedStatus | None = None
    manifest: ManifestStatus | None = None
    commit: CommitStatus | None = None
    verification: VerificationStatus | None = None
    last_error: str | None = None
    unknown: str | None = None


def known_before(status: SweepCellStatus) -> Findings:
    """What the last pass left: the start of every decision, because unknown keeps what was known."""
    ready = next((c for c in status.conditions if c.type == "Ready"), None)
    known = {str(reason): reason for reason in Reason}
    return Findings(
        phase=status.phase or SweepCellPhase.PENDING,
        reason=known.get(ready.reason, Reason.PENDING) if ready is not None else Reason.PENDING,
        message=status.message or "",
        observation=status.observation,
        finished=status.finished,
        manifest=status.manifest,
        commit=status.commit,
        verification=status.verification,
        last_error=status.last_error,
    )


def held_outside(found: Findings) -> bool:
    """Blocked by a token or a repository, as asking the Hub showed; refusals of the agent carry `last_error`."""
    return found.phase is SweepCellPhase.BLOCKED and found.reason in _OUTSIDE and found.last_error is None


_OUTSIDE = frozenset(
    {
        Reason.SECRET_NOT_FOUND,
        Reason.SECRET_KEY_MISSING,
        Reason.SECRET_INVALID,
        Reason.HUB_UNAUTHORIZED,
        Reason.HUB_FORBIDDEN,
        Reason.HUB_REPO_NOT_FOUND,
    }
)
