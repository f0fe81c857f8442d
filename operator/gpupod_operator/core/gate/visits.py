"""What this pass's visit over SSH is worth for the cells: contact with a running agent of this pod, or less."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from gpupod_operator.api.conditions import ConditionStatus, ConditionType, find_condition
from gpupod_operator.api.phases import AttemptIntent
from gpupod_operator.core.gate.question import GateQuestion
from gpupod_operator.core.provider import ProviderPod, ProviderState
from gpupod_operator.core.shell import ShellReading, SshClass

_NO_VISIT = frozenset({ProviderState.EXITED, ProviderState.ERROR, ProviderState.TERMINATED})
_DRAIN_LIMIT = timedelta(seconds=65)
"""SIGTERM, 60 s, SIGKILL (behaviour.md 5), and a margin: by then a drained workload has ended."""


class VisitState(StrEnum):
    """SILENT: a session without a running agent of this pod in it, or no try at all for want of our own key.

    Nothing is known about unfinished cells then.
    """

    REACHABLE = "Reachable"
    SILENT = "Silent"
    UNREACHABLE = "Unreachable"


@dataclass(frozen=True, slots=True)
class Visit:
    """`bound`: the agent's state file is of this pod id (a network volume may hold that of an older pod).

    `live`: a launch of ours runs; None when that could not be read. `heartbeat` is the agent's last look.
    """

    state: VisitState
    why: str
    bound: bool
    pod_started_at: datetime | None
    live: bool | None = None
    launches: int = 0
    heartbeat: datetime | None = None


def needs_visit(q: GateQuestion, pod: ProviderPod) -> bool:
    """A visit was not made in this pass, and the pod is in a state in which one could succeed."""
    return q.shell is None and pod.state not in _NO_VISIT


def read_visit(q: GateQuestion, pod: ProviderPod) -> Visit:
    """The visit of this pass, judged."""
    shell = q.shell
    if shell is None:
        return Visit(VisitState.UNREACHABLE, f"pod {q.pod_id} is {pod.state}", False, pod.started_at)
    if shell.ssh is SshClass.NO_KEY:
        # nobody looked, so the pod is not out of contact either: nothing is known about unfinished cells
        return Visit(VisitState.SILENT, f"pod {q.pod_id} could not be visited: {shell.message}", False, pod.started_at)
    if shell.ssh is not SshClass.OK:
        why = f"pod {q.pod_id} is out of contact ({shell.ssh})"
        return Visit(VisitState.UNREACHABLE, why, False, pod.started_at)
    agent = shell.agent
    if agent is None or agent.pod_id != q.pod_id:
        why = f"there is no agent of pod {q.pod_id} in the session"
        return Visit(VisitState.SILENT, why, False, pod.started_at, _live(shell), _count(q, shell))
    if not agent.running:
        why = "the agent does not run" + (f": {agent.problem}" if agent.problem else "")
        return Visit(VisitState.SILENT, why, True, pod.started_at, _live(shell), _count(q, shell))
    return Visit(
        VisitState.REACHABLE, "in contact", True, pod.started_at, _live(shell), _count(q, shell), agent.heartbeat
    )


def not_yet_looked(q: GateQuestion, visit: Visit) -> str | None:
    """Why the agent's word on unfinished cells is not final yet, or None.

    The agent polls: a cell that was finished in the last moments of the workload is in its state only after a look
    that began after the workload had ended.
    """
    if visit.launches == 0:
        return None
    ended = workload_ended_at(q)
    if ended is None:
        return "the end of the workload is not recorded yet"
    if visit.heartbeat is None or visit.heartbeat <= ended:
        return "the agent has not looked at the cells since the workload ended"
    return None


def workload_ended_at(q: GateQuestion) -> datetime | None:
    """A time by which the workload had ended for sure, or None."""
    if q.workload_ended_at is not None:
        return q.workload_ended_at
    workload = q.status.workload
    if workload is not None and workload.pod_id == q.pod_id and workload.ended_at is not None:
        return workload.ended_at
    running = find_condition(q.status.conditions, ConditionType.WORKLOAD_RUNNING)
    if running is not None and running.status is ConditionStatus.FALSE:
        return running.last_transition_time
    attempt = q.status.attempt
    if attempt is not None and attempt.intent is AttemptIntent.DRAIN and attempt.intent_time is not None:
        return attempt.intent_time + _DRAIN_LIMIT
    return None


def _live(shell: ShellReading) -> bool | None:
    if shell.launches is None:
        return None
    if any(launch.alive for launch in shell.launches):
        return True
    return None if any(launch.alive is None for launch in shell.launches) else False


def _count(q: GateQuestion, shell: ShellReading) -> int:
    """Launches of this attempt; a network volume keeps the records of older ones."""
    attempt = q.status.attempt.id if q.status.attempt is not None else None
    return sum(attempt is None or launch.attempt == attempt for launch in shell.launches or ())
