"""Each operation with its operator killed at each point, alone: nothing is doubled, leaked, or left undone."""

from __future__ import annotations

import os

import pytest

from chaoskit.operations import OPERATIONS
from chaoskit.points import Mishap
from chaoskit.schedule import Schedule, play

EVERY = 1 if int(os.environ.get("GPUPOD_SCHEDULES", "400")) > 400 else 3
"""`make soak` kills at each point. Random schedules and deaths by signal meet the others."""


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_every_operation_ends_well_when_nothing_goes_wrong(operation):
    played = play(Schedule(operation))
    assert played.broken == (), str(played)
    assert played.deaths == 0
    assert len(played.points) > 5, "there is nothing to crash at"


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_kill_at_any_point_of_it_breaks_no_promise(operation):
    points = len(play(Schedule(operation)).points)
    killed = [play(Schedule(operation, {point: Mishap.KILL})) for point in range(0, points, EVERY)]
    assert [str(p) for p in killed if p.broken] == []
    assert {p.deaths for p in killed} == {1}, "each of them did kill"
