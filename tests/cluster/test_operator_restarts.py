"""The API server or its etcd dies under the running operator: one pod, no row lost, and the process goes on or anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gpupod_rehearsal.demo.stage import NAMESPACE
from worldkit.crashes import SERVERS, crashed
from worldkit.deployment import Deployment
from worldkit.fixtures import Theatre, condition, is_true, pod_id


def rows_of(shown: dict[str, Any] | None) -> list[str]:
    """The names in a rendered map."""
    lines = ((shown or {}).get("data") or {}).get("pods.conf", "").splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


async def until_rows(theatre: Theatre, *names: str) -> None:
    """Return once the map has just these rows."""
    await theatre.admin.watch_until(
        "ConfigMap", "pods-conf", lambda shown: rows_of(shown) == list(names), namespace=NAMESPACE, timeout=90
    )


@asynccontextmanager
async def watched_rows(theatre: Theatre) -> AsyncIterator[list[list[str]]]:
    """Every state of the map until the block ends, as names; the watch outlives restarts of the API server."""
    seen: list[list[str]] = []

    def note(shown: dict[str, Any] | None) -> bool:
        seen.append(rows_of(shown))
        return False

    watching = asyncio.create_task(
        theatre.admin.watch_until("ConfigMap", "pods-conf", note, namespace=NAMESPACE, timeout=600)
    )
    try:
        yield seen
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@pytest.mark.parametrize("server", SERVERS)
async def test_a_ready_pod_outlives_a_crash_and_the_next_edit_is_heard(theatre: Theatre, server: str) -> None:
    await theatre.apply()
    first = pod_id(await theatre.until(is_true("Ready")))
    await until_rows(theatre, "one")
    async with Deployment(theatre.stage) as deployment, watched_rows(theatre) as seen:
        async with crashed(theatre, server):
            await theatre.lists(2)
        await theatre.apply("two")
        await theatre.until(is_true("Ready"), "two", within=90)
        await until_rows(theatre, "one", "two")
        assert seen, "the map was watched"
        assert all("one" in names for names in seen), "no state of the map lacked the row"
        await theatre.apply(state="Stopped")
        await theatre.until(lambda pod: ((pod or {}).get("status") or {}).get("phase") == "Stopped", within=90)
        assert len(deployment.exits) <= 1, "it goes on, or it lost its Lease and is started once"
    kept = next(pod for pod in await theatre.alive() if pod["podId"] == first)
    assert kept["status"] == "EXITED"
    assert len(await theatre.alive()) == 2
    assert await theatre.creates() == 2


@pytest.mark.parametrize("server", SERVERS)
async def test_a_crash_during_the_create_call_ends_with_that_one_pod(theatre: Theatre, server: str) -> None:
    """The pod's id comes at a moment when it can be written nowhere."""
    await theatre.stage.sim("POST", "/_sim/faults", {"name": "create-then-slow", "params": {"seconds": 2}})
    async with Deployment(theatre.stage):
        await theatre.apply()
        await theatre.seen(lambda pods: len(pods) == 1)
        async with crashed(theatre, server):
            await answered(theatre)
        pod = await theatre.until(is_true("Ready"), within=90)
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(pod)]
    assert await theatre.creates() == 1


@pytest.mark.parametrize("server", SERVERS)
async def test_a_crash_while_the_pod_comes_up_ends_with_that_one_pod(theatre: Theatre, server: str) -> None:
    await theatre.stage.sim("POST", "/_sim/faults", {"name": "slow-pull", "params": {"seconds": 4}})
    async with Deployment(theatre.stage):
        await theatre.apply()
        coming = await theatre.until(lambda pod: pod_id(pod) is not None)
        assert condition(coming, "Ready")["status"] == "False"
        async with crashed(theatre, server):
            await theatre.lists(2)
        pod = await theatre.until(is_true("Ready"), within=90)
    assert pod_id(pod) == pod_id(coming)
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(pod)]
    assert await theatre.creates() == 1


async def answered(theatre: Theatre) -> None:
    """Return once the vendor answered a create."""
    async with asyncio.timeout(30):
        while await theatre.creates() == 0:
            await asyncio.sleep(0.05)
