"""The API server or its etcd is away for longer than a Lease lasts: the process ends, the pods go on."""

from __future__ import annotations

import pytest

from worldkit.crashes import SERVERS, crashed
from worldkit.deployment import ended
from worldkit.fixtures import Theatre, is_true, pod_id


@pytest.mark.parametrize("server", SERVERS)
async def test_an_outage_longer_than_the_lease_ends_the_process_and_costs_no_pod(theatre: Theatre, server: str) -> None:
    await theatre.apply()
    first = pod_id(await theatre.until(is_true("Ready")))
    operator = theatre.stage.operator
    assert operator is not None
    before = await theatre.mutations()
    async with crashed(theatre, server):
        assert await ended(operator) == 0
        assert await theatre.mutations() == before, "who may not act, asks the vendor for nothing"
        assert [p["podId"] for p in await theatre.alive()] == [first]
    await theatre.stage.start_operator()
    await theatre.apply("two")
    await theatre.until(is_true("Ready"), "two", within=90)
    again = await theatre.until(is_true("Ready"))
    assert pod_id(again) == first
    assert len(await theatre.alive()) == 2
    assert len(await theatre.mutations()) == len(before) + 1, "the one create of the second object"
