"""Random schedules of deaths, outages, conflicts and the vendor's faults. `GPUPOD_SCHEDULES` plays more of them."""

from __future__ import annotations

import os

import pytest

from chaoskit.schedule import drawn, play

MANY = int(os.environ.get("GPUPOD_SCHEDULES", "400"))
"""In all; `make soak` asks for 20,000."""
LOTS = 8


@pytest.mark.parametrize("lot", range(LOTS))
@pytest.mark.parametrize("faults", [False, True], ids=["deaths", "deaths-and-faults"])
def test_no_schedule_breaks_a_promise(points, lot, faults):
    each = MANY // (2 * LOTS)
    seeds = range(lot * each, (lot + 1) * each)
    broken = [str(p) for p in (play(drawn(seed, points, faults)) for seed in seeds) if p.broken]
    assert broken == []
