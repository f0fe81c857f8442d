"""What is known of one object, and the answers to a decision's needs, without I/O."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gatekit.cells import agent_cell, cell_spec, empty_listing
from gatekit.cells import status as cell_status
from gpupod_operator.api.base import dump
from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import CellsStatus, GpuPodStatus
from gpupod_operator.core.artifacts import HubCommit, HubListing
from gpupod_operator.core.gate import CellFacts
from gpupod_operator.core.gpupod.agent import cells_digest
from gpupod_operator.core.gpupod.scope import Facts, InstallTry, SecretsReport
from gpupod_operator.core.known import Fact, Known, Unknown
from gpupod_operator.core.plan import (
    Need,
    Plan,
)
from gpupod_operator.core.policy import Policy
from gpupod_operator.core.provider import AccountIdentity, NetworkVolume, ProviderPod
from gpupod_operator.core.shell import ShellReading, ShellTarget, SshClass
from gpupod_operator.ports import ProviderError
from gpupod_operator.runtime.views import abandon_reason
from podkit.cloud import OFFERS, Cloud
from podkit.hosts import Host

UID, INSTANCE = "uid-pod", "inst"
ACCOUNT = Known(AccountIdentity("acc", "fp", verified=True))
SECRETS = Known(SecretsReport(ssh_public_key="ssh"))
NO_VOLUME = Known(None)


def spec_of(**changes: Any) -> GpuPodSpec:
    """One H100, an image, no workload; a dict is merged into its section."""
    raw: dict[str, Any] = {"placement": {"candidates": [{"gpuType": "H100"}]}, "container": {"image": "img"}}
    for key, value in changes.items():
        raw[key] = {**raw.get(key, {}), **value} if isinstance(value, dict) else value
    return GpuPodSpec.model_validate(raw)


@dataclass
class World:
    """One object in one cloud. `status` is what is committed; everything else an operator would lose in a crash."""

    spec: GpuPodSpec = field(default_factory=spec_of)
    cloud: Cloud = field(default_factory=Cloud)
    status: GpuPodStatus = field(default_factory=GpuPodStatus)
    policy: Policy = field(default_factory=Policy)
    account: Fact[AccountIdentity] = ACCOUNT
    secrets: Fact[SecretsReport] = SECRETS
    volume: Fact[NetworkVolume | None] = NO_VOLUME
    annotations: dict[str, str] = field(default_factory=dict)
    generation: int = 1
    deleting: bool = False
    released: bool = False
    rivals: tuple[str, ...] = ()
    hosts: dict[str, Host] = field(default_factory=dict)
    cells: dict[str, CellFacts] = field(default_factory=dict)
    hub: dict[str, Fact[HubListing]] = field(default_factory=dict)
    commits: dict[str, tuple[HubCommit, ...]] = field(default_factory=dict)
    crash: str | None = None
    """`intent`: die after the next intent is written, before the act. `answer`: die after the act."""
    plans: list[Plan] = field(default_factory=list)
    writes: int = 0
    _sequence: int = -1
    _reading: ShellReading | None = None
    _reading_of: tuple[str, str, int] | None = None
    _recent: ProviderPod | None = None
    _install: InstallTry | None = None
    _ghost_deletes: dict[str, datetime] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    """Prints of the cells' tokens; a cell that is not in it has the print `t`."""
    _entropy: int = 0

    @property
    def now(self) -> datetime:
        return self.cloud.now

    @property
    def pod_id(self) -> str | None:
        return self.status.attempt.pod_id if self.status.attempt is not None else None

    @property
    def pod(self) -> ProviderPod:
        assert self.pod_id is not None
        return self.cloud.pods[self.pod_id]

    def host(self, pod_id: str | None = None) -> Host:
        return self.hosts.setdefault(pod_id or self.pod_id or "", Host())

    def condition(self, kind: str) -> tuple[str, str]:
        found = next((c for c in self.status.conditions if c.type == kind), None)
        return (str(found.status), found.reason) if found is not None else ("", "")

    def edit(self, **changes: Any) -> None:
        """A person changes the spec."""
        self.spec = GpuPodSpec.model_validate(
            {**self.spec.model_dump(), **{k: _merged(self.spec, k, v) for k, v in changes.items()}}
        )
        self.generation += 1

    def declare(self, uid: str = "c1", *, done: bool | None = None, state: str = "Producing", **changes: Any) -> None:
        """A cell of this pod; `done` says what was last read of it on the recorded pod."""
        seen = cell_status("Produced" if done else "Producing", pod_id=self.pod_id, done=done, state=state)
        fields = {"uid": uid, "name": uid, "spec": cell_spec(root=f"/workspace/{uid}"), "status": seen, **changes}
        self.cells[uid] = CellFacts(**fields)
        self.host().cells[uid] = agent_cell(uid, state)

    def digest(self) -> str:
        """Of the agent's input, as the store would tell it."""
        return cells_digest((uid, 1, self.tokens.get(uid, "t")) for uid in self.cells)

    def restart(self) -> None:
        """A new operator process: only the committed status is left."""
        self._sequence, self._reading, self._reading_of, self._recent = -1, None, None, None
        self._install, self._ghost_deletes = None, {}
        self.status = GpuPodStatus.model_validate(dump(self.status))

    def _summary(self) -> CellsStatus | None:
        if not self.cells and self.status.cells is None:
            return None
        phases = [c.status.phase for c in self.cells.values()]
        verified = sum(p == "Verified" for p in phases)
        return CellsStatus(
            declared=len(phases), verified=verified, in_flight=0, blocked=0, summary=f"{verified}/{len(phases)}"
        )

    def _gather(self, facts: Facts, needs: frozenset[Need], status: GpuPodStatus) -> Facts:
        for need in (n for n in Need if n in needs):
            facts = dataclasses.replace(facts, **self._answer(need, facts, status))
        return facts

    def _answer(self, need: Need, facts: Facts, status: GpuPodStatus) -> dict[str, Any]:
        pod_id = status.attempt.pod_id if status.attempt is not None else None
        if need is Need.ACCOUNT:
            return {"account": self.account}
        if need is Need.LIST:
            return {} if isinstance(self.account, Unknown) else {"inventory": self.cloud.tick(), "listed_now": True}
        if need is Need.POD:
            try:
                return {"pod": Known(self.cloud.read(pod_id)) if pod_id else Unknown("no pod id")}
            except ProviderError as error:
                return {"pod": Unknown(str(error))}
        if need is Need.SHELL:
            return {"shell": self._visit(status), "visited_now": True}
        if need in (Need.CELLS, Need.LISTINGS):
            return self._read_cells(need, facts, pod_id)
        logs = Known(self.cloud.logs) if self.cloud.logs is not None else Unknown("502")
        return {
            Need.TOKENS: {"cells_digest": Known(self.digest())},
            Need.CATALOG: {"catalog": Known(OFFERS)},
            Need.SECRETS: {"secrets": self.secrets},
            Need.VOLUME: {"volume": self.volume},
            Need.SYSTEM_LOG: {"system_log": logs},
        }[need]

    def _visit(self, status: GpuPodStatus) -> ShellReading:
        target = target_of(status)
        if target is None:
            return ShellReading(SshClass.TIMEOUT, "the pod has no endpoint", self.now)
        self._reading = self.host(target.pod_id).read(target, self.now)
        self._reading_of = target_key(target)
        return self._reading

    def _read_cells(self, need: Need, facts: Facts, pod_id: str | None) -> dict[str, Any]:
        agent = facts.shell.agent if facts.visited_now and facts.shell is not None else None
        cells = []
        for uid, cell in self.cells.items():
            given_up = abandon_reason(self.annotations.get("gpupod.dev/abandon-data"), pod_id)
            seen = agent.cells.get(uid) if agent is not None else None
            fresh = dataclasses.replace(cell, abandoned=given_up, agent=seen)
            if need is Need.LISTINGS:
                listing = self.hub.get(uid, Known(empty_listing(self.now)))
                fresh = dataclasses.replace(fresh, listing=listing, commits=Known(self.commits.get(uid, ())))
            cells.append(fresh)
        return {"cells": Known(tuple(cells)), "listed_cells": need is Need.LISTINGS or facts.listed_cells}


def target_of(status: GpuPodStatus) -> ShellTarget | None:
    attempt, endpoint = status.attempt, status.endpoint
    if attempt is None or attempt.pod_id is None or endpoint is None or endpoint.host is None or endpoint.port is None:
        return None
    return ShellTarget(attempt.pod_id, endpoint.host, endpoint.port, endpoint.host_key)


def target_key(target: ShellTarget | None) -> tuple[str, str, int] | None:
    return (target.pod_id, target.host, target.port) if target is not None else None


def _merged(spec: GpuPodSpec, key: str, value: Any) -> Any:
    old = getattr(spec, key)
    return {**old.model_dump(), **value} if isinstance(value, dict) and old is not None else value
