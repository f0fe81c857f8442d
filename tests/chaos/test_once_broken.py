"""Schedules that broke a promise once, each of them found by `make soak`."""

from __future__ import annotations

import pytest

from chaoskit.points import Mishap
from chaoskit.schedule import Fault, Schedule, play

KILL = Mishap("kill")
SCHEDULES = {
    "a restored object and the one list that lies": Schedule(
        "restored-before-create", {4: KILL}, (Fault.of("empty-list"),), 4559
    ),
    "a restored object and a list without its last page": Schedule(
        "restored-before-create",
        {3: KILL, 18: Mishap("repeated")},
        (Fault.of("repeated-cursor"), Fault.of("truncated-page")),
        2125,
    ),
    "a start that no list shows": Schedule(
        "start", {14: KILL, 74: KILL}, (Fault.of("duplicate-ids"), Fault.of("truncated-page")), 5371
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_it_holds_now(schedule: Schedule) -> None:
    played = play(schedule)
    assert not played.broken, str(played)
