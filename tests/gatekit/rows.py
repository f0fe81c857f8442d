"""Cells and words that the tests of the gate's table share."""

from __future__ import annotations

from gatekit.cells import (
    agent_cell,
    empty_listing,
    status,
)
from gatekit.questions import (
    cell,
)
from gpupod_operator.core.gate import GateReason, Safe
from gpupod_operator.core.known import Known

RERUN = [GateReason.MIGRATE, GateReason.REPLACE, GateReason.RESET]
DISCARD = [GateReason.DELETE, GateReason.EXPIRE, GateReason.STOP]
ALL = [*RERUN, *DISCARD]
NETWORK = {"network": {"volumeId": "v1", "path": "/workspace"}}
PERSISTENT = {"persistent": {"sizeGb": 20, "path": "/workspace"}}
NOTHING = Known(empty_listing())


def unfinished(uid: str = "c2", state: str = "Producing", **changes):
    fields = {
        "status": status(state, done=False),
        "listing": NOTHING,
        "commits": Known(()),
        "agent": agent_cell(uid, state),
    }
    return cell(uid, **{**fields, **changes})


def finished(uid: str = "c2", state: str = "Produced", **changes):
    fields = {
        "status": status("Produced", done=True),
        "listing": NOTHING,
        "commits": Known(()),
        "agent": agent_cell(uid, state),
    }
    return cell(uid, **{**fields, **changes})


def names(verdict: Safe) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return verdict.receipt.rerun or (), verdict.receipt.discarded or ()
