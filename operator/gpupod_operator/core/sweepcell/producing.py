"""From the pod's side: what the agent's state file says, and what the end of a pod means for a cell."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpupod_operator.api.phases import SweepCellPhase
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import CommitStatus, FinishedStatus, ManifestStatus, Observation
from gpupod_operator.core.sweepcell.findings import Findings
from gpupod_operator.core.sweepcell.places import LOST_STATE, Place, place_of
from gpupod_operator.core.sweepcell.scope import AgentView, CellScope


def take_reading(scope: CellScope, found: Findings) -> Findings:
    """The findings with this pass's reading of the agent in them; unchanged when there is none of the present pod."""
    agent = fresh_agent(scope)
    if agent is None or agent.cell is None:
        return found
    cell = agent.cell
    found = replace(found, observation=_observed(found.observation, agent, scope.now))
    if cell.done_seen and not _accepted_here(found.finished, agent):
        finished = FinishedStatus(
            pod_id=agent.pod_id, pod_started_at=agent.pod_started_at, attempt=agent.attempt, at=scope.now
        )
        found = replace(found, finished=finished)
    if cell.manifest_digest is not None and (found.manifest is None or found.manifest.digest != cell.manifest_digest):
        manifest = ManifestStatus(
            digest=cell.manifest_digest,
            files=cell.manifest_files,
            bytes=cell.manifest_bytes,
            taken_at=cell.manifest_taken_at,
            attempt=agent.attempt,
        )
        found = replace(found, manifest=manifest)
    if cell.commit_oid is not None and (found.commit is None or found.commit.oid != cell.commit_oid):
        found = replace(found, commit=CommitStatus(oid=cell.commit_oid, at=cell.commit_at))
    return found


def fresh_agent(scope: CellScope) -> AgentView | None:
    """The reading, if it is of the present pod and worth something: out of contact the agent goes on without us.

    A state file whose agent does not run is old: only a done file in it is evidence, for a done file does not vanish.
    """
    agent = scope.agent
    if agent is None or agent.cell is None or agent.pod_id != scope.pod.pod_id:
        return None
    if not scope.pod.running or agent.pod_started_at not in (None, scope.pod.started_at):
        return None  # a stop wiped the disk that this was read from, or another start has begun
    lost = scope.pod.contact_lost_at
    if lost is not None and agent.read_at <= lost:
        return None
    return agent if agent.running or agent.cell.done_seen else None


def settle_end(scope: CellScope, found: Findings, why: str) -> Findings:
    """The disk of the reading is gone, the Hub was asked and does not hold the cell: it is lost, or unfinished."""
    seen = found.observation
    if seen is None:
        return found
    if not seen.done_seen:
        return _unfinished(scope, found, seen, place_of(seen, scope.pod))
    return replace(
        found,
        phase=SweepCellPhase.LOST,
        reason=Reason.LOST,
        message=f"finished on pod {seen.pod_id}, which ended before it was verified on the Hub ({why})",
        observation=seen.model_copy(update={"done_seen": False, "state": LOST_STATE, "since": scope.now}),
    )


def back_to_pending(scope: CellScope, found: Findings) -> Findings:
    """A lost cell is computed again by the next attempt (or the next start of the same pod)."""
    seen, pod = found.observation, scope.pod
    lost_on = seen.pod_id if seen is not None else None
    another = pod.pod_id is not None and pod.pod_id != lost_on
    restarted = (
        pod.pod_id is not None
        and pod.running
        and seen is not None
        and pod.started_at is not None
        and pod.started_at != seen.pod_started_at
    )
    if found.phase is not SweepCellPhase.LOST or not (another or restarted):
        return found
    return Findings(
        phase=SweepCellPhase.PENDING,
        reason=Reason.LOST,
        message=f"lost with pod {lost_on} after it was finished; it is computed again on pod {pod.pod_id}",
        observation=None if another else seen,
    )


def _unfinished(scope: CellScope, found: Findings, seen: Observation, place: Place) -> Findings:
    observation = None if place is Place.PAST else seen
    if observation is not None and observation.state != "Pending":
        observation = seen.model_copy(update={"done_seen": False, "state": "Pending", "since": scope.now})
    if found.reason is Reason.MISSING_NO_SOURCE:
        # It is not unfinished: it was on the Hub. Only the reading of the old pod is over.
        return replace(found, observation=observation)
    return replace(
        found,
        phase=SweepCellPhase.PENDING,
        reason=Reason.PENDING,
        message=f"not finished when pod {seen.pod_id} ended; the next start computes it",
        observation=observation,
    )


def _observed(before: Observation | None, agent: AgentView, now: datetime) -> Observation | None:
    cell = agent.cell
    if cell is None:
        return before
    after = Observation(
        pod_id=agent.pod_id, pod_started_at=agent.pod_started_at, done_seen=cell.done_seen, state=cell.state, since=now
    )
    if before is not None and before.model_copy(update={"since": now}) == after:
        return before
    return after


def _accepted_here(finished: FinishedStatus | None, agent: AgentView) -> bool:
    return finished is not None and finished.pod_id == agent.pod_id and finished.pod_started_at == agent.pod_started_at
