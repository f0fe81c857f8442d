"""Each operation with its operator killed at each point, alone: nothing is doubled, leaked, or left undone."""

from __future__ import annotations

import pytest

from chaoskit.operations import OPERATIONS
from chaoskit.points import Mishap
from chaoskit.schedule import Schedule, play, run


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_every_operation_ends_well_when_nothing_goes_wrong(operation):
    played = play(Schedule(operation))
    assert played.broken == (), str(played)
    assert played.deaths == 0
    assert len(played.points) > 5, "there is nothing to crash at"


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_kill_at_any_point_of_it_breaks_no_promise(operation):
    points = len(play(Schedule(operation)).points)
    killed = [play(Schedule(operation, {point: Mishap.KILL})) for point in range(points)]
    assert [str(p) for p in killed if p.broken] == []
    assert [p.deaths for p in killed] == [1] * points, "each of them did kill"


@pytest.mark.parametrize("mishap", [Mishap.CONFLICT, Mishap.LOST])
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_conflict_or_a_lost_answer_at_any_write_breaks_no_promise(operation, mishap):
    names = play(Schedule(operation)).points
    when = "before" if mishap is Mishap.CONFLICT else "after"
    writes = [n for n, name in enumerate(names) if name.startswith(f"{when} cluster.") and "get" not in name]
    assert [str(p) for p in run(*(Schedule(operation, {n: mishap}) for n in writes))] == []


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_an_api_server_away_for_ten_minutes_breaks_no_promise(operation):
    points = len(play(Schedule(operation)).points)
    every = range(0, points, max(1, points // 8))
    assert [str(p) for p in run(*(Schedule(operation, {n: Mishap.OUTAGE}) for n in every))] == []
