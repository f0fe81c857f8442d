"""Scopes of one SweepCell on a healthy pod, changed by what a test is about, and a loop that answers its needs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from gatekit.cells import NOW, POD, STARTED, cell_spec
from gpupod_operator.api.sweepcell import SweepCellStatus
from gpupod_operator.core.artifacts import AgentCell, HubCommit, HubListing
from gpupod_operator.core.known import Fact, Known, Unknown
from gpupod_operator.core.sweepcell.decide import decide_cell
from gpupod_operator.core.sweepcell.scope import AgentView, CellPlan, CellScope, PodView

UID = "c1"


def pod_view(**changes: Any) -> PodView:
    fields: dict[str, Any] = {"exists": True, "name": "sweep", "attempt": "a1", "pod_id": POD, "started_at": STARTED}
    fields.update(changes)
    return PodView(**fields)


def agent_view(cell: AgentCell | None, **changes: Any) -> AgentView:
    fields: dict[str, Any] = {
        "pod_id": POD,
        "pod_started_at": STARTED,
        "attempt": "a1",
        "read_at": NOW,
        "running": True,
        "cell": cell,
    }
    fields.update(changes)
    return AgentView(**fields)


def scope(status: SweepCellStatus | None = None, **changes: Any) -> CellScope:
    """Asked of the Hub a minute ago, so that nothing but the test's own point makes it due."""
    fields: dict[str, Any] = {
        "namespace": "ml",
        "name": "c1",
        "uid": UID,
        "generation": 1,
        "spec": cell_spec(),
        "status": status or SweepCellStatus(),
        "now": NOW,
        "pod": pod_view(),
        "hub_checked_at": NOW - timedelta(minutes=1),
    }
    fields.update(changes)
    return CellScope(**fields)


def run(given: CellScope, hub: HubListing | Unknown | None = None, commits: tuple[HubCommit, ...] = ()) -> CellPlan:
    """One pass: decide, read what is needed from `hub`, decide again. Fails if a need stays open."""
    plan = decide_cell(given)
    if not plan.needs:
        return plan
    assert hub is not None, "the Hub is asked, and the test has none"
    listing: Fact[HubListing] = hub if isinstance(hub, Unknown) else Known(hub)
    told: Fact[tuple[HubCommit, ...]] = hub if isinstance(hub, Unknown) else Known(commits)
    plan = decide_cell(replace(given, listing=listing, commits=told, hub_checked_at=given.now))
    assert not plan.needs
    return plan


def condition(plan: CellPlan, kind: str) -> tuple[str, str]:
    """(status, reason) of a condition."""
    found = next(c for c in plan.status.conditions if c.type == kind)
    return str(found.status), found.reason
