"""The cell agent: put on the pod once per (pod id, start, input); again, ever less often, while it does not run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime, timedelta

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.backoff import backoff_delay
from gpupod_operator.core.gpupod.scope import Act, Ask, InstallTry, Presence, Scope, Step
from gpupod_operator.core.gpupod.timer import note_timer, timer_order, told_deadline, wanted_deadline
from gpupod_operator.core.known import Known
from gpupod_operator.core.plan import InstallAgent, Need, Outcome
from gpupod_operator.core.provider import ProviderState
from gpupod_operator.core.shell import SshClass
from gpupod_operator.core.sweepcell.cells_json import CellOrder, cells_json

LONGEST_PAUSE = timedelta(minutes=5)
"""Between two installs of an agent that does not come up. Chosen: an image without Python costs one session each."""


def place_agent(scope: Scope) -> Step | None:
    """Install when this start has none yet, it is not running, its tree differs, or its input changed.

    None: it runs, or it cannot be had now. Then the work goes on: its results lie on the pod until an agent is there.
    """
    deadline = wanted_deadline(scope)
    if not scope.facts.declared_cells and deadline is None and told_deadline(scope) is None:
        return None
    pod, attempt, reading, target = scope.pod, scope.status.attempt, scope.facts.shell, scope.target()
    assert pod is not None and attempt is not None and reading is not None
    if target is None:
        return None
    told = scope.facts.cells_digest
    if told is None:
        return Ask(frozenset({Need.TOKENS}))
    if not isinstance(told, Known):
        scope.wake_in(scope.policy.observe_every)
        return None
    digest, agent = told.value, reading.agent
    same_input = attempt.agent_start == pod.started_at and attempt.cells_digest == digest
    same_input = same_input and told_deadline(scope) == deadline
    running = agent is not None and agent.running and agent.tree_hash == scope.facts.agent_tree
    if agent is not None:
        note_timer(scope, agent)
    if same_input and running:
        return None
    tried, wanted = scope.facts.install, (pod.id, pod.started_at, digest, deadline)
    if tried is not None and (tried.pod_id, tried.pod_started_at, tried.digest, tried.timer) != wanted:
        tried = None
    problem = agent.problem if agent is not None and same_input else None
    if tried is not None and scope.now < _again_at(scope, tried):
        if problem or tried.problem or tried.count > 1:
            _unavailable(scope, problem or tried.problem or "it was started and does not run")
        scope.wake_at(_again_at(scope, tried))
        return relisted(scope)
    if not scope.facts.visited_now:
        # the reading may be older than our own install: look again before installing twice
        return Ask(frozenset({Need.SHELL}))
    if scope.facts.cells is None:
        return Ask(frozenset({Need.CELLS}))
    if not isinstance(scope.facts.cells, Known):
        return None
    listed = relisted(scope)
    if listed is not None:
        return listed
    orders = [CellOrder(scope.identity.namespace, c.name, c.uid, c.spec, c.status) for c in scope.facts.cells.value]
    cells = cells_json(pod.id, attempt.id or "", orders, timer_order(scope, pod, orders))
    return Act(
        InstallAgent(target, attempt.id or "", cells, digest, pod.started_at, deadline),
        Reason.STARTING,
        f"putting the cell agent on pod {pod.id} ({len(scope.facts.cells.value)} cells)",
    )


def keep_agent(scope: Scope) -> Step | None:
    """While an end is held, what was repaired (a token, a destination) has to reach the agent, or it is held for ever.

    Nothing is launched, and a pod that was not visited is left alone.
    """
    reading, pod = scope.facts.shell, scope.pod
    seen = scope.presence is Presence.PRESENT and pod is not None and pod.state is ProviderState.RUNNING
    if not seen or scope.spec.paused or reading is None or reading.ssh is not SshClass.OK:
        return None
    why_held = scope.conditions.get("ArtifactsSafe")
    step = place_agent(scope)
    if why_held is not None:
        scope.conditions["ArtifactsSafe"] = why_held  # what the gate says is the better news
    return step


def relisted(scope: Scope) -> Step | None:
    """Before a relaunch every unverified cell is listed again: what landed meanwhile is adopted, not re-run."""
    if scope.status.migration is None or scope.status.migration.step is None or scope.facts.listed_cells:
        return None
    return Ask(frozenset({Need.LISTINGS}))


def tried_once_more(before: InstallTry | None, action: InstallAgent, outcome: Outcome, now: datetime) -> InstallTry:
    """The install that just ended, counted with those before it that had the same input."""
    key = (action.target.pod_id, action.pod_started_at, action.cells_digest)
    same = before is not None and (before.pod_id, before.pod_started_at, before.digest) == key
    count = before.count + 1 if before is not None and same and before.timer == action.timer else 1
    return InstallTry(*key, count, now, None if outcome.ok else outcome.detail[:512], action.timer)


def cells_digest(cells: Iterable[tuple[str, int, str]]) -> str:
    """Of (uid, generation, token's print) of each cell: what is to be uploaded where, and with what right."""
    return hashlib.sha256(json.dumps(sorted(cells)).encode()).hexdigest()[:16]


def _again_at(scope: Scope, tried: InstallTry) -> datetime:
    return tried.at + backoff_delay(tried.count - 1, scope.policy.observe_every, LONGEST_PAUSE)


def _unavailable(scope: Scope, why: str) -> None:
    if not scope.facts.declared_cells:
        return  # it would only hold the stop timer, and the status of that says why it does not
    scope.condition("ArtifactsSafe", None, Reason.AGENT_UNAVAILABLE, f"the agent is not at work: {why}")
