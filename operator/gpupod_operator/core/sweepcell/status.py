"""The one place where conditions of a SweepCell are computed, and where events come from: differences of statuses."""

from __future__ import annotations

from collections.abc import Iterator

from gpupod_operator.api.conditions import Condition, ConditionStatus, find_condition, set_condition
from gpupod_operator.api.gpupod_status import AbandonStatus
from gpupod_operator.api.phases import SweepCellPhase, VerificationState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import SweepCellStatus
from gpupod_operator.core.sweepcell.findings import Findings
from gpupod_operator.core.sweepcell.scope import CellEvent, CellScope

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN

_FINISHED = frozenset(
    {SweepCellPhase.PRODUCED, SweepCellPhase.UPLOADING, SweepCellPhase.PARTIAL, SweepCellPhase.VERIFIED}
)
_WARNING = frozenset({SweepCellPhase.BLOCKED, SweepCellPhase.FAILED, SweepCellPhase.LOST, SweepCellPhase.PARTIAL})
_TOLD = _WARNING | {SweepCellPhase.VERIFIED, SweepCellPhase.PRODUCED}

Verdict = tuple[ConditionStatus, Reason, str]


def write_status(scope: CellScope, found: Findings, *, deletion_waits: bool) -> SweepCellStatus:
    """The whole new status; equal to the old one when nothing has changed."""
    ready = _ready(scope, found, deletion_waits)
    conditions = scope.status.conditions
    for kind, (status, reason, message) in _conditions(scope, found, ready):
        conditions = set_condition(conditions, kind, status, reason, message, scope.generation, scope.now)
    return SweepCellStatus(
        observed_generation=scope.generation,
        phase=found.phase,
        message=ready[2],
        conditions=conditions,
        observation=found.observation,
        finished=found.finished,
        manifest=found.manifest,
        commit=found.commit,
        verification=found.verification,
        last_error=found.last_error,
        abandon=_abandon(scope),
    )


def events_of(scope: CellScope, after: SweepCellStatus) -> tuple[CellEvent, ...]:
    """Events of this transition: a phase worth telling, or a cell that stopped being ready for a new reason."""
    before = scope.status
    was, now = find_condition(before.conditions, "Ready"), find_condition(after.conditions, "Ready")
    if now is None:
        return ()
    message = f"pod {scope.pod.pod_id or 'none'}: {after.message or ''}"
    if after.phase != before.phase and after.phase in _TOLD:
        reason = Reason.PRODUCED if after.phase is SweepCellPhase.PRODUCED else Reason(now.reason)
        return (CellEvent(reason, message, after.phase in _WARNING),)
    if after.phase is SweepCellPhase.PENDING and before.phase is SweepCellPhase.LOST:
        return (CellEvent(Reason.LOST, message, warning=True),)
    if now.status is FALSE and (was is None or was.status is not FALSE or was.reason != now.reason):
        return (CellEvent(Reason(now.reason), message, warning=True),)
    return ()


def _conditions(scope: CellScope, found: Findings, ready: Verdict) -> Iterator[tuple[str, Verdict]]:
    stalled = _stalled(found, ready)
    yield "Ready", ready
    yield "Produced", _produced(scope, found)
    yield "Uploaded", _uploaded(found)
    yield "Verified", _verified(scope, found)
    # kstatus reads Reconciling=True as "in progress": a cell that is on its way must not hold a GitOps wait.
    waits = ready[0] is not TRUE and not stalled
    yield "Reconciling", (TRUE if waits else FALSE, ready[1], ready[2] if waits else "")
    yield "Stalled", (TRUE if stalled else FALSE, ready[1], ready[2] if stalled else "")


def _ready(scope: CellScope, found: Findings, deletion_waits: bool) -> Verdict:
    pod = scope.pod
    if deletion_waits:
        return FALSE, Reason.TEARDOWN_BLOCKED, _deletion_waits(scope, found)
    if found.phase is SweepCellPhase.VERIFIED:
        return TRUE, Reason.VERIFIED, found.message
    if found.phase is SweepCellPhase.BLOCKED and found.reason is Reason.DESTINATION_CONFLICT:
        return FALSE, found.reason, found.message
    if not pod.exists:
        return FALSE, Reason.POD_NOT_FOUND, f"there is no GpuPod {pod.name} in namespace {scope.namespace}: create it"
    if found.phase in (SweepCellPhase.BLOCKED, SweepCellPhase.FAILED, SweepCellPhase.LOST):
        return FALSE, found.reason, found.message
    if pod.ended is not None:
        edit = f"annotate the GpuPod with gpupod.dev/resume: {pod.pod_id}" if pod.pod_id else "resume the GpuPod"
        return FALSE, Reason.POD_ENDED, f"its pod has ended ({pod.ended}); {edit}"
    agent = scope.agent
    if agent is not None and agent.problem and agent.pod_id == pod.pod_id:
        return FALSE, Reason.AGENT_UNAVAILABLE, f"the agent cannot run on pod {pod.pod_id}: {agent.problem}"
    return TRUE, Reason.ACCEPTED, found.message


def _deletion_waits(scope: CellScope, found: Findings) -> str:
    seen = found.observation.pod_id if found.observation is not None else None
    bound = seen or scope.pod.pod_id
    edit = f'annotate gpupod.dev/abandon-data: "{bound}: <why>"'
    return f"deletion waits: pod {bound} may hold it and the Hub does not ({found.message}); wait, or {edit}"


def _stalled(found: Findings, ready: Verdict) -> bool:
    if ready[0] is TRUE:
        return False
    if found.phase is SweepCellPhase.BLOCKED:
        return ready[1] is not Reason.RATE_LIMITED
    return ready[1] in (Reason.POD_NOT_FOUND, Reason.POD_ENDED, Reason.AGENT_UNAVAILABLE)


def _produced(scope: CellScope, found: Findings) -> Verdict:
    seen = found.observation
    if found.phase in _FINISHED or (seen is not None and seen.done_seen):
        return TRUE, Reason.PRODUCED, "its done file was seen"
    if found.phase is SweepCellPhase.LOST:
        return FALSE, Reason.LOST, found.message
    before = _before(scope, "Produced")
    if before is not None and before.reason == Reason.LOST and found.phase is SweepCellPhase.PENDING:
        return FALSE, Reason.LOST, found.message if found.reason is Reason.LOST else before.message
    if found.phase is SweepCellPhase.PRODUCING:
        return FALSE, Reason.PRODUCING, "no done file yet"
    return FALSE, Reason.PENDING, "no done file seen"


def _uploaded(found: Findings) -> Verdict:
    if found.commit is not None and found.commit.oid is not None:
        return TRUE, Reason.UPLOADED, f"commit {found.commit.oid}"
    if found.phase is SweepCellPhase.VERIFIED:
        return TRUE, Reason.UPLOADED, "on the Hub"
    if found.phase in (SweepCellPhase.BLOCKED, SweepCellPhase.FAILED):
        return FALSE, found.reason, found.message
    return FALSE, Reason.PENDING, "no commit is known"


def _verified(scope: CellScope, found: Findings) -> Verdict:
    before = _before(scope, "Verified")
    was_unknown = before is not None and before.status is UNKNOWN and before.reason == Reason.CELLS_UNKNOWN
    if found.unknown is not None or (was_unknown and scope.listing is None):
        # The first cause stays until the Hub answers: an outage whose words vary must not write at every pass.
        return (
            UNKNOWN,
            Reason.CELLS_UNKNOWN,
            before.message if before is not None and was_unknown else found.unknown or "",
        )
    if found.phase is SweepCellPhase.VERIFIED:
        return TRUE, Reason.VERIFIED, found.message
    if found.verification is None:
        asked = scope.listing is not None or (before is not None and before.status is FALSE)
        return (FALSE if asked else UNKNOWN), Reason.PENDING, "not on the Hub yet" if asked else "the Hub was not asked"
    reason = _BY_VERDICT.get(found.verification.state, found.reason) if found.verification.state else found.reason
    return FALSE, reason, found.message


_BY_VERDICT = {
    VerificationState.MISSING: Reason.MISSING,
    VerificationState.PARTIAL: Reason.PARTIAL,
    VerificationState.MISMATCH: Reason.MISMATCH,
}


def _before(scope: CellScope, kind: str) -> Condition | None:
    return find_condition(scope.status.conditions, kind)


def _abandon(scope: CellScope) -> AbandonStatus | None:
    if scope.abandoned is None:
        return scope.status.abandon
    seen = scope.status.observation
    pod_id = seen.pod_id if seen is not None and seen.pod_id is not None else scope.pod.pod_id
    return AbandonStatus(pod_id=pod_id, reason=scope.abandoned)
