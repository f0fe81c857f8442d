"""Cells at the stages of their life, made by passes and not by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from gatekit.cells import (
    NOW,
    POD,
    agent_cell,
    commit,
    empty_listing,
    listing,
    manifest_bytes,
)
from gatekit.scopes import agent_view, pod_view, run, scope
from gpupod_operator.api.sweepcell import SweepCellStatus
from gpupod_operator.core.sweepcell.scope import CellScope

WHOLE = listing("c1")
MANIFEST = manifest_bytes("c1")
TOLD = (commit("c1", MANIFEST),)
NEXT = {"pod_id": "pod-2", "gone_ids": frozenset({POD}), "attempt": "a2", "started_at": NOW}
LATER = timedelta(hours=7)


def reading(state: str, **changes) -> CellScope:
    return scope(agent=agent_view(agent_cell("c1", state, **changes)))


def verified() -> SweepCellStatus:
    return run(reading("Uploaded"), WHOLE, TOLD).status


def produced() -> SweepCellStatus:
    return run(reading("Produced")).status


def lost() -> SweepCellStatus:
    return run(scope(produced(), pod=pod_view(**NEXT)), empty_listing()).status


def again(plan_status: SweepCellStatus, given: CellScope) -> CellScope:
    return replace(given, status=plan_status)
