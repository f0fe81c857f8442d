"""Each operation with an API server that refuses, loses an answer, or is away."""

from __future__ import annotations

import pytest

from chaoskit.operations import OPERATIONS
from chaoskit.points import WRITES, Mishap
from chaoskit.schedule import Schedule, play, run


@pytest.mark.parametrize("mishap", [Mishap.CONFLICT, Mishap.LOST])
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_conflict_or_a_lost_answer_at_any_write_breaks_no_promise(operation, mishap):
    names = play(Schedule(operation)).points
    when = "before" if mishap is Mishap.CONFLICT else "after"
    writes = [n for n, name in enumerate(names) if name in {f"{when} {write}" for write in WRITES}]
    assert writes or operation == "finalizer-stripped", "nothing is written of an object that is gone"
    assert [str(p) for p in run(*(Schedule(operation, {n: mishap}) for n in writes))] == []


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_an_api_server_away_for_ten_minutes_breaks_no_promise(operation):
    points = len(play(Schedule(operation)).points)
    every = range(0, points, max(1, points // 8))
    assert [str(p) for p in run(*(Schedule(operation, {n: Mishap.OUTAGE}) for n in every))] == []


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_nor_does_an_operator_that_dies_during_those_ten_minutes_and_starts_again_and_again(operation):
    points = len(play(Schedule(operation)).points)
    every = range(0, points, max(1, points // 4))
    played = [play(Schedule(operation, {n: Mishap.OUTAGE, n + 1: Mishap.KILL})) for n in every]
    assert [str(p) for p in played if p.broken] == []
    # at the last points of some there is nothing left to die at
    assert any(p.deaths > 1 for p in played), "it cannot start while the API server is away"
