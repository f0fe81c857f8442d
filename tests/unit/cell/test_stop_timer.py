"""When a due timer may stop its pod, and how it waits where it may not."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gpupod_cell.deadman import LONGEST_PAUSE, StopTimer
from gpupod_cell.layout import Layout, encode
from gpupod_cell.orders import Orders, parse_orders
from gpupod_cell.record import Cell
from gpupod_cell.timer import Next, next_step

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
CELL = {
    "uid": "u1",
    "name": "c1",
    "doneFile": "/workspace/out/c1/DONE",
    "artifacts": [{"name": "evals", "path": "/workspace/out/c1/evals"}],
    "destination": {"repo": "ada/sweeps", "path": "s/c1"},
}
TIMER = {
    "deadline": "2026-12-01T12:10:00Z",
    "writtenAt": "2026-12-01T11:00:00Z",
    "podStartedAt": "2026-12-01T10:00:00+00:00",
    "ours": True,
}


def orders(cells: Any = (CELL,), **timer: Any) -> Orders:
    whole = {"format": 1, "podId": "pod1", "attempt": "a1", "cells": list(cells), "timer": {**TIMER, **timer}}
    return parse_orders(encode(whole))


def step(state: str | None, *, working: bool = False, cells: Any = (CELL,), **timer: Any) -> Next:
    given = orders(cells, **timer)
    assert given.timer is not None
    known = {"u1": Cell("c1", state=state)} if state is not None else {}
    return next_step(given.timer, given.cells, known, working=working)[0]


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("Uploaded", Next.STOP),
        ("Pending", Next.STOP),
        ("Producing", Next.STOP),
        ("Produced", Next.SAVE),
        ("Uploading", Next.SAVE),
        ("Blocked", Next.HOLD),
        ("Failed", Next.HOLD),
        (None, Next.SAVE),
    ],
)
def test_a_finished_cell_keeps_the_pod_until_it_is_on_the_hub(state: str | None, wanted: Next) -> None:
    assert step(state) is wanted


def test_a_cell_that_cannot_be_saved_keeps_the_workload_running_too() -> None:
    assert step("Blocked", working=True) is Next.HOLD
    assert step("Producing", working=True) is Next.DRAIN


def test_what_somebody_else_launched_is_not_ended() -> None:
    assert step("Producing", ours=False) is Next.HOLD
    assert step("Pending", ours=False) is Next.STOP


def test_what_a_stop_keeps_need_not_be_saved() -> None:
    assert step("Blocked", keeps=["u1"]) is Next.STOP


def test_what_the_agent_is_not_told_of_keeps_the_pod() -> None:
    assert step("Uploaded", unjudged=["c2"]) is Next.HOLD
    assert step("Uploaded", cells=()) is Next.HOLD


def test_disposable_data_keeps_nothing() -> None:
    assert step("Blocked", working=True, disposable=True) is Next.STOP


def test_a_cell_that_the_operator_has_proof_of_is_saved() -> None:
    assert step("Blocked", cells=({**CELL, "state": "Verified"},)) is Next.STOP


@pytest.mark.parametrize("broken", [{"deadline": "soon"}, {"deadline": None}, {"deadline": "2026-12-01T12:10:00"}])
def test_a_timer_that_cannot_be_read_is_no_timer_and_the_cells_are_served(broken: dict[str, Any]) -> None:
    given = orders(**broken)
    assert given.timer is None
    assert len(given.cells) == 1
    assert "timer" in given.unusable[0]


class Rig:
    """A timer on a pod whose clock, answers and variables the test sets."""

    def __init__(self, home: Path, **variables: str) -> None:
        self.layout = Layout(home / ".gpupod", home / "shm")
        (self.layout.agent).mkdir(parents=True)
        self.layout.settings.write_text('{"runpodEndpoint": "http://127.0.0.1:9"}')
        self.now, self.ticks = NOW, 0.0
        self.asked: list[tuple[str, str]] = []
        self.refusal: str | None = None
        self.variables = {"RUNPOD_POD_ID": "pod1", "RUNPOD_API_KEY": "rpa_own", **variables}
        self.timer = StopTimer(
            self.layout,
            now=lambda: self.now,
            monotonic=lambda: self.ticks,
            stop=self._stop,
            variable=lambda name: self.variables.get(name, ""),
        )

    def _stop(self, endpoint: str, pod_id: str, key: str) -> str | None:
        self.asked.append((endpoint, pod_id))
        assert key == "rpa_own"
        return self.refusal

    def arrive(self, at: datetime) -> None:
        """The orders came when the pod's clock said this."""
        self.layout.accepted.write_text("{}")
        os.utime(self.layout.accepted, (at.timestamp(), at.timestamp()))

    def look(self, given: Orders, state: str = "Uploaded", looks: int = 2) -> str:
        for _ in range(looks):
            shown = self.timer.look(given, {"u1": Cell("c1", state=state)})
        assert shown is not None
        return str(shown["state"])


@pytest.mark.parametrize("wrong", [timedelta(0), timedelta(hours=5), timedelta(days=-400)])
def test_a_pod_whose_clock_is_wrong_stops_when_it_should(tmp_path: Path, wrong: timedelta) -> None:
    rig = Rig(tmp_path)
    rig.arrive(datetime(2026, 12, 1, 11, tzinfo=UTC) + wrong)
    rig.now = datetime(2026, 12, 1, 12, 9, 59, tzinfo=UTC) + wrong
    assert rig.look(orders()) == "Armed"
    rig.now += timedelta(seconds=2)
    assert rig.look(orders()) == "Stopping"
    assert rig.asked == [("http://127.0.0.1:9", "pod1")]


@pytest.mark.parametrize("missing", ["RUNPOD_POD_ID", "RUNPOD_API_KEY"])
def test_a_pod_that_is_not_meant_or_has_no_key_is_not_stopped(tmp_path: Path, missing: str) -> None:
    rig = Rig(tmp_path, **{missing: ""})
    rig.arrive(NOW - timedelta(days=1))
    assert rig.look(orders()) == "Refused"
    assert rig.asked == []


def test_orders_of_another_pod_on_a_shared_volume_stop_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path, RUNPOD_POD_ID="pod2")
    rig.arrive(NOW - timedelta(days=1))
    assert rig.look(orders()) == "Refused"
    assert rig.asked == []


def test_a_refused_stop_is_asked_again_ever_more_slowly_and_a_taken_one_after_minutes(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.arrive(NOW - timedelta(days=1))
    rig.refusal = "RunPod answered 503: "
    for _ in range(3600):
        rig.ticks += 1
        assert rig.look(orders(), looks=1) in ("Saving", "Stopping")
    assert 5 <= len(rig.asked) <= 3600 / LONGEST_PAUSE + 6
    rig.refusal = None
    rig.ticks += LONGEST_PAUSE
    rig.look(orders(), looks=1)
    taken = len(rig.asked)
    for _ in range(250):
        rig.ticks += 1
        rig.look(orders(), looks=1)
    assert len(rig.asked) == taken


def test_one_look_after_the_workload_has_ended_is_not_enough(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.arrive(NOW - timedelta(days=1))
    assert rig.look(orders(), looks=1) == "Saving"
    assert rig.asked == []
    assert rig.look(orders(), looks=1) == "Stopping"


def test_no_timer_says_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    assert rig.timer.look(None, {}) is None
