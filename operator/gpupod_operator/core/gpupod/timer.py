"""The stop timer on the pod: for `spend.ttl` when no operator lives. The agent there holds it; here is what it is told.

Told only where the gate would let an expiry through without a person; the agent asks the same questions of what lies on
the pod before it stops anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from gpupod_operator.api.attempt import AttemptTimer
from gpupod_operator.api.gpupod_status import AttemptCause, AttemptIntent
from gpupod_operator.api.policies import Approval, ArtifactsPolicy
from gpupod_operator.core.artifacts import AgentReading
from gpupod_operator.core.gate.survival import cell_paths, kept_by_stop, launched_by_us
from gpupod_operator.core.gpupod.scope import Scope
from gpupod_operator.core.mounts import on_mount
from gpupod_operator.core.provider import ProviderPod, ProviderState
from gpupod_operator.core.sweepcell.cells_json import CellOrder, TimerOrder, ordered

ACTS_WITHIN = timedelta(minutes=5)
"""From the deadline to the stop, where nothing has to be saved: a look, a drain of 60 s, the order and its effect."""
ABLE = ("Armed", "Draining", "Saving", "Stopping")


def wanted_deadline(scope: Scope) -> datetime | None:
    """When this pod is to stop itself; None: never. `ttl` and some more, so that a living operator acts before."""
    spec, attempt = scope.spec, scope.status.attempt
    if spec.spend.ttl is None or attempt is None or attempt.created_at is None or spec.keep_running:
        return None
    if spec.remediation.approval is not Approval.WHEN_VERIFIED:
        return None
    if spec.remediation.artifacts is not ArtifactsPolicy.DISPOSABLE and not scope.facts.declared_cells:
        return None
    return (attempt.created_at + spec.spend.ttl + scope.policy.timer_grace).replace(microsecond=0)


def told_deadline(scope: Scope) -> datetime | None:
    """What the agent on this start of the pod was last told."""
    attempt, pod = scope.status.attempt, scope.pod
    timer = attempt.timer if attempt is not None else None
    return timer.deadline if timer is not None and pod is not None and timer.started_at == pod.started_at else None


def timer_order(scope: Scope, pod: ProviderPod, cells: Sequence[CellOrder]) -> TimerOrder | None:
    """What goes to the agent with the cells."""
    deadline, attempt = wanted_deadline(scope), scope.status.attempt
    if deadline is None or attempt is None:
        return None
    mounts = kept_by_stop(scope.spec.volume, pod)
    keeps = (c.uid for c in cells if all(any(on_mount(p, m) for m in mounts) for p in cell_paths(c.spec)))
    made_by_us = attempt.cause is not AttemptCause.ADOPT and not attempt.taken_over
    return TimerOrder(
        deadline=deadline,
        written_at=scope.now,
        pod_started_at=pod.started_at.isoformat() if pod.started_at is not None else "",
        ours=launched_by_us(scope.spec, made_by_us),
        disposable=scope.spec.remediation.artifacts is ArtifactsPolicy.DISPOSABLE,
        keeps=tuple(sorted(keeps)),
        unjudged=tuple(sorted(c.name for c in cells if not ordered(c))),
    )


def note_timer(scope: Scope, agent: AgentReading) -> None:
    """Whether the agent holds what it was told, by its own word; a transition, or nothing is written."""
    attempt = scope.status.attempt
    timer = attempt.timer if attempt is not None else None
    if timer is None or told_deadline(scope) is None:
        return
    shown = agent.timer if agent.running else None
    armed = shown is not None and shown.deadline == timer.deadline and shown.state in ABLE
    why = shown.message if shown is not None else agent.problem
    problem = why[:500] if why and not armed else None
    noted = AttemptTimer(started_at=timer.started_at, deadline=timer.deadline, armed=armed or None, problem=problem)
    if noted != timer:
        scope.put_attempt(timer=noted)


def stopped_by_timer(scope: Scope) -> bool:
    """The pod is EXITED, its timer was armed and is due, and nobody else is known to have stopped it."""
    pod, attempt = scope.pod, scope.status.attempt
    timer = attempt.timer if attempt is not None else None
    if pod is None or pod.state is not ProviderState.EXITED or timer is None or timer.deadline is None:
        return False
    ordered_by_us = attempt is not None and attempt.intent in (AttemptIntent.STOP, AttemptIntent.START)
    start = scope.status.pod.started_at if scope.status.pod is not None else None
    return timer.started_at == start and scope.now >= timer.deadline and not ordered_by_us


def armed_until(scope: Scope) -> datetime | None:
    """By when this start of the pod has stopped itself, if nothing has to be saved; None: no timer can be relied on."""
    attempt, pod = scope.status.attempt, scope.pod
    timer = attempt.timer if attempt is not None else None
    if timer is None or not timer.armed or timer.deadline is None or pod is None or timer.started_at != pod.started_at:
        return None
    return timer.deadline + ACTS_WITHIN
