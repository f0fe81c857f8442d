"""What goes in and out beside the decision: the agent's orders, destinations, the pod's summary."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from gatekit.cells import NOW, cell_spec
from gpupod_cell.orders import read_orders
from gpupod_operator.api.conditions import set_condition
from gpupod_operator.api.sweepcell import SweepCellStatus
from gpupod_operator.core.sweepcell.cells_json import CellOrder, cells_json
from gpupod_operator.core.sweepcell.destinations import Claim, overlapping
from gpupod_operator.core.sweepcell.summary import cells_summary


def order(name: str = "c1", phase: str | None = None, **status) -> CellOrder:
    told = SweepCellStatus.model_validate({"phase": phase, **status})
    return CellOrder("ml", name, f"uid-{name}", cell_spec(), told)


def test_the_agent_reads_its_orders_as_they_were_meant(tmp_path):
    path = tmp_path / "cells.json"
    done = order("c2", "Verified", manifest={"digest": "d" * 64}, commit={"oid": "abc"})
    part = order("c3", "Partial", manifest={"digest": "e" * 64}, commit={"oid": "def"})

    path.write_bytes(cells_json("pod-1", "a1", [part, done, order()]))
    orders = read_orders(path)
    assert orders is not None
    assert (orders.pod_id, orders.attempt, orders.unusable) == ("pod-1", "a1", ())
    first, second, third = orders.cells
    assert (first.name, first.uid, first.state, first.settled) == ("c1", "uid-c1", "Pending", False)
    assert (first.destination.repo, first.destination.repo_type, first.destination.path) == (
        "org/results",
        "dataset",
        "sweep/c",
    )
    assert first.artifacts[0].files == ("metrics.json",)
    assert first.artifacts[1].include == ("*.bin",)
    assert first.progress_deadline == 600
    assert second.settled
    assert second.commit == "abc"
    assert not third.settled, "a partial cell has to be uploaded again"
    assert third.manifest == "e" * 64


def test_equal_cells_give_equal_bytes_in_any_order():
    assert cells_json("p", "a", [order("a"), order("b")]) == cells_json("p", "a", [order("b"), order("a")])


def test_a_cell_that_must_not_be_uploaded_is_no_order():
    told = set_condition((), "Ready", "False", "DestinationConflict", "", 1, NOW)
    conflict = CellOrder("ml", "x", "u", cell_spec(), SweepCellStatus(conditions=told))
    external = CellOrder("ml", "y", "v", cell_spec(upload={"mode": "External"}), SweepCellStatus())
    assert json.loads(cells_json("p", "a", [conflict, external]))["cells"] == []


def claim(name: str, path: str, *, age: int = 0, **changes) -> Claim:
    raw = {"repo": "org/results", "path": path, "tokenSecretRef": {"name": "hf", "key": "t"}, **changes}
    return Claim(name, f"uid-{name}", NOW - timedelta(minutes=age), cell_spec(destination=raw).destination)


@pytest.mark.parametrize(
    ("mine", "other", "conflict"),
    [
        ("a/b", "a/b", True),
        ("a/b/c", "a/b", True),
        ("a", "a/b", True),
        ("a/b", "a/bc", False),
        ("a/b", "c", False),
    ],
)
def test_the_younger_of_two_overlapping_paths_is_told_the_older(mine, other, conflict):
    young, old = claim("young", mine), claim("old", other, age=5)
    assert overlapping(young, [young, old]) == ("old" if conflict else None)
    assert overlapping(old, [young, old]) is None


def test_age_is_decided_by_uid_when_the_times_are_equal():
    a, b = claim("a", "x"), claim("b", "x")
    assert (overlapping(a, [a, b]), overlapping(b, [a, b])) == (None, "a")


def test_other_repositories_revisions_and_types_do_not_overlap():
    mine = claim("mine", "x")
    for changes in ({"repo": "org/other"}, {"revision": "dev"}, {"type": "model"}):
        assert overlapping(mine, [claim("old", "x", age=5, **changes)]) is None
    assert overlapping(mine, [claim("old", "x", age=5, repo="Org/Results")]) == "old"


def test_the_summary_counts_each_cell_once():
    phases = [
        None,
        "Pending",
        "Producing",
        "Produced",
        "Uploading",
        "Partial",
        "Verified",
        "Verified",
        "Blocked",
        "Lost",
    ]
    told = cells_summary(SweepCellStatus.model_validate({"phase": p}) for p in phases)
    assert (told.declared, told.verified, told.in_flight, told.blocked, told.summary) == (10, 2, 4, 2, "2/10")
