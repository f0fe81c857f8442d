"""The loop of runtime/loop.py without I/O: decide, gather, decide again, commit, act, settle, commit."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from gatekit.cells import agent_cell
from gpupod_operator.api.base import dump
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.core.gpupod.agent import tried_once_more
from gpupod_operator.core.gpupod.decide import decide
from gpupod_operator.core.gpupod.scope import Facts, Identity, Scope
from gpupod_operator.core.gpupod.settle import settle_call, settle_visit
from gpupod_operator.core.known import Known
from gpupod_operator.core.plan import (
    CaptureLogs,
    CreatePod,
    DeletePod,
    DrainWorkload,
    InstallAgent,
    LaunchWorkload,
    Need,
    Outcome,
    PatchPod,
    Plan,
    StartPod,
    StopPod,
)
from podkit.hosts import TREE
from podkit.world import INSTANCE, UID, World, spec_of, target_key, target_of

TICK = timedelta(seconds=15)


class Crashed(Exception):
    """The operator died here; `status` is what the API server holds."""


class Driver(World):
    """Plays passes over the world and crashes where a test wants it to."""

    def run(self, *, until: Any = None, limit: timedelta = timedelta(minutes=5), tick: bool = True) -> None:
        """Ticks and passes until `until()` holds (an assertion error if it never does) or the time is over."""
        end = self.now + limit
        while True:
            self.settle()
            if until is not None and until():
                return
            if self.now >= end or self.released:
                assert until is None, f"never happened: {self.status.phase} {self.status.message}"
                return
            self.cloud.now += TICK
            if tick:
                self.cloud.tick()

    def settle(self, most: int = 25) -> Plan:
        """Passes at this moment until nothing is left to do now."""
        plan = self.step()
        for _ in range(most):
            if plan.action is None and (plan.wake is None or plan.wake > timedelta(0)):
                return plan
            if self.released or self._pause:
                return plan
            plan = self.step()
        raise AssertionError(f"a busy loop: {type(plan.action).__name__} {plan.sentence}")

    _pause: float = 0.0

    def step(self) -> Plan:
        """One pass."""
        self._pause = 0.0
        plan = self.decide()
        self.plans.append(plan)
        self._commit(plan.status)
        if plan.release:
            self.released = True
        if plan.action is None:
            return plan
        if self.crash == "intent":
            self.crash = None
            self.restart()
            raise Crashed
        settled = self._perform(plan)
        if self.crash == "answer":
            self.crash = None
            self.restart()
            raise Crashed
        self._pause = settled.pause or 0.0
        self._commit(settled.status)
        return plan

    def decide(self) -> Plan:
        before = self.status
        inventory = self.cloud.inventory if self.cloud.inventory.complete_at is not None else None
        if self.pod_id is not None:
            self.cloud.tracked = {self.pod_id}
        facts = Facts(
            inventory=inventory if isinstance(self.account, Known) else None,
            new_list=inventory is not None and inventory.sequence != self._sequence,
            recent_pod=self._recent if self._recent is not None and self._recent.id == self.pod_id else None,
            shell=self._reading if self._reading_of == target_key(target_of(before)) else None,
            declared_cells=len(self.cells),
            cells_summary=self._summary(),
            rivals=self.rivals,
            cells_digest=Known(self.digest()) if self._reading is not None else None,
            install=self._install,
            ghost_deletes=self._ghost_deletes,
            agent_tree=TREE,
        )
        facts = self._gather(facts, frozenset({Need.ACCOUNT}), before)
        identity = Identity("ml", "sweep", UID, self.generation, INSTANCE, self.deleting, dict(self.annotations))
        self._entropy += 1
        entropy = hashlib.sha256(str(self._entropy).encode()).hexdigest()
        asked: set[Need] = set()
        for _ in range(8):
            scope = Scope(identity, self.spec, before, facts, self.now, self.policy, entropy)
            plan = decide(scope)
            if not plan.needs:
                self._sequence = facts.inventory.sequence if facts.inventory is not None else self._sequence
                return plan
            assert not (plan.needs <= asked) or Need.SHELL in plan.needs, f"asks again: {plan.needs}"
            asked |= plan.needs
            facts = self._gather(facts, plan.needs, scope.status)
        raise AssertionError(f"no decision; last needs {plan.needs}")

    def _perform(self, plan: Plan) -> Any:
        action, status = plan.action, plan.status
        identity = self.account.value if isinstance(self.account, Known) else None
        if isinstance(action, (CreatePod, DeletePod, StopPod, StartPod, PatchPod)):
            answer = {
                CreatePod: lambda a: self.cloud.create(a.request),
                DeletePod: lambda a: self.cloud.delete(a.pod.id),
                StopPod: lambda a: self.cloud.stop(a.pod.id),
                StartPod: lambda a: self._start(a.pod.id),
                PatchPod: lambda a: self.cloud.patch(a.pod.id, a.change),
            }[type(action)](action)
            self._recent = answer.pod or self._recent
            if isinstance(action, DeletePod) and action.ghost:
                self._ghost_deletes = {**self._ghost_deletes, action.pod.id: self.now}
            if not isinstance(action, CreatePod):
                self._reading = None
            return settle_call(status, action, answer, self.now, self.policy, identity)
        self._reading = None
        if isinstance(action, InstallAgent):
            outcome = self.host(action.target.pod_id).install(action, {u: agent_cell(u, "Pending") for u in self.cells})
            self._install = tried_once_more(self._install, action, outcome, self.now)
        elif isinstance(action, LaunchWorkload):
            outcome = self.host(action.target.pod_id).launch(action)
        elif isinstance(action, DrainWorkload):
            outcome = self.host(action.target.pod_id).drain(action)
        else:
            assert isinstance(action, CaptureLogs)
            outcome = Outcome(True, data={"configMap": "logs"})
        return settle_visit(status, action, outcome, self.now)

    def _start(self, pod_id: str) -> Any:
        self.host(pod_id).restart()
        return self.cloud.start(pod_id)

    def _commit(self, after: GpuPodStatus) -> None:
        """As the API server would keep it: through JSON, and only when it differs."""
        if dump(after) != dump(self.status):
            self.writes += 1
        self.status = GpuPodStatus.model_validate(dump(after))


__all__ = ["INSTANCE", "UID", "Crashed", "Driver", "spec_of"]
