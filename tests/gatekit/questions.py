"""Questions to the gate: a healthy, owned pod with one cell, changed by what a test is about."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from gatekit.cells import NOW, POD, STARTED, agent_cell, cell_spec, commit, listing, manifest_bytes, status
from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.core.artifacts import AgentCell, AgentReading
from gpupod_operator.core.gate import CellFacts, GateQuestion, GateReason
from gpupod_operator.core.known import Known
from gpupod_operator.core.provider import AccountIdentity, ProviderPod, ProviderState, Stamp
from gpupod_operator.core.shell import LaunchRecord, ShellReading, SshClass

UID = "uid-pod"
INSTANCE = "inst"
STAMP = Stamp(f"{INSTANCE}/ml/sweep/{UID}", "nonce1")
ENDED = NOW - timedelta(minutes=2)


def pod_spec(**changes: Any) -> GpuPodSpec:
    raw: dict[str, Any] = {
        "placement": {"candidates": [{"gpuType": "H100"}]},
        "container": {"image": "img"},
        "workload": {"command": ["run"]},
    }
    for key, value in changes.items():
        raw[key] = {**raw.get(key, {}), **value} if isinstance(value, dict) else value
    return GpuPodSpec.model_validate(raw)


def pod_status(**changes: Any) -> GpuPodStatus:
    raw: dict[str, Any] = {
        "attempt": {"id": "a1", "nonce": "nonce1", "podId": POD, "launchedStart": STARTED},
        "account": {"id": "acc"},
        "pod": {"id": POD, "providerStatus": "RUNNING", "startedAt": STARTED},
        "workload": {"podId": POD, "endedAt": ENDED},
    }
    for key, value in changes.items():
        raw[key] = {**raw.get(key, {}), **value} if isinstance(value, dict) else value
    return GpuPodStatus.model_validate(raw)


def provider_pod(**changes: Any) -> ProviderPod:
    fields: dict[str, Any] = {
        "id": POD,
        "name": "sweep-nonce1",
        "state": ProviderState.RUNNING,
        "raw_state": "RUNNING",
        "stamp": STAMP,
        "started_at": STARTED,
    }
    fields.update(changes)
    return ProviderPod(**fields)


def visit(*agents: AgentCell, live: bool | None = False, launched: bool = True, **changes: Any) -> ShellReading:
    """A session in which the agent of this pod runs and has looked after the workload's end."""
    agent: dict[str, Any] = {
        "running": True,
        "tree_hash": "t",
        "attempt": "a1",
        "pod_id": POD,
        "heartbeat": NOW - timedelta(seconds=5),
        "cells": {a.uid: a for a in agents},
    }
    agent.update(changes)
    launches = (LaunchRecord("l1", "a1", 7, live, None if live else 0),) if launched else ()
    return ShellReading(SshClass.OK, "", NOW, launches=launches, agent=AgentReading(**agent))


def no_contact(ssh: SshClass = SshClass.TIMEOUT) -> ShellReading:
    return ShellReading(ssh, "no answer", NOW)


def cell(uid: str = "c1", **changes: Any) -> CellFacts:
    """A cell that is Verified by a listing of this pass, on a pod where it was read."""
    manifest = manifest_bytes(uid)
    fields: dict[str, Any] = {
        "uid": uid,
        "name": uid,
        "spec": cell_spec(),
        "status": status("Verified", done=True),
        "listing": Known(listing(uid)),
        "commits": Known((commit(uid, manifest),)),
        "agent": agent_cell(uid, "Uploaded"),
    }
    fields.update(changes)
    return CellFacts(**fields)


def question(reason: GateReason = GateReason.MIGRATE, **changes: Any) -> GateQuestion:
    """All is well and verified; with `cells` the visit shows their agent states."""
    cells = changes.get("cells", Known((cell(),)))
    agents = [c.agent for c in cells.value if c.agent is not None] if isinstance(cells, Known) else []
    fields: dict[str, Any] = {
        "reason": reason,
        "pod_id": POD,
        "now": NOW,
        "spec": pod_spec(),
        "status": pod_status(),
        "instance": INSTANCE,
        "uid": UID,
        "account": Known(AccountIdentity("acc", "fp", verified=True)),
        "pod": Known(provider_pod()),
        "gone": False,
        "cells": cells,
        "shell": visit(*agents),
        "approved_by": None,
        "recreate_problem": None,
        "created_by_us": True,
        "ever_contacted": True,
        "launch_confirmed": True,
        "price_per_hour": Decimal("2.5"),
        "contact_lost_at": None,
    }
    fields.update(changes)
    return GateQuestion(**fields)


def out_of_contact(reason: GateReason = GateReason.MIGRATE, **changes: Any) -> GateQuestion:
    """Contact was lost an hour ago: longer than any progressDeadline of these tests."""
    fields: dict[str, Any] = {"shell": no_contact(), "contact_lost_at": NOW - timedelta(hours=1)}
    fields.update(changes)
    return question(reason, **fields)
