"""The operator's watches end in 410, or the API server is out of its reach: what happened meanwhile is not missed."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.demo.stage import API, NAMESPACE, Stage
from worldkit.deployment import ended
from worldkit.fixtures import Theatre, is_true, phase, pod_id
from worldkit.wire import Wire


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """One of the test's own: it is started with other arguments than everybody's."""
    with ControlPlane.start(tmp_path / "control-plane", progress=lambda _: None) as plane:
        yield plane


@pytest.fixture
async def wire(theatre: Theatre) -> AsyncIterator[Wire]:
    """The theatre, its operator behind a wire, its API server without a watch cache.

    Without the cache a watch is served by etcd itself, which answers 410 for what it has compacted. With it the same
    takes minutes and thousands of events.
    """
    stage = theatre.stage
    assert stage.operator is not None
    await stage.operator.end()
    stage.plane.apiserver.command += ("--watch-cache=false",)
    await asyncio.to_thread(stage.plane.restart_apiserver)
    async with Wire(stage) as line:
        operator = await line.start_operator()
        yield line
        await operator.end()


def compact(stage: Stage) -> None:
    """etcd forgets everything but the present, as a real API server tells it to every five minutes."""
    pki = stage.plane.access.ca.parent
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "tls.crt", pki / "tls.key")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    flag = "--listen-client-urls="
    url = next(part.removeprefix(flag) for part in stage.plane.etcd.command if part.startswith(flag))

    def ask(path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        with opener.open(urllib.request.Request(url + path, json.dumps(body).encode()), timeout=10) as answer:
            return dict(json.load(answer))

    key = base64.b64encode(b"/registry").decode()
    revision = ask("/v3/kv/range", {"key": key})["header"]["revision"]
    ask("/v3/kv/compaction", {"revision": revision, "physical": True})


async def test_edits_and_deletions_behind_an_expired_watch_are_heard(theatre: Theatre, wire: Wire) -> None:
    for name in ("edited", "deleted"):
        await theatre.apply(name)
    edited = pod_id(await theatre.until(is_true("Ready"), "edited"))
    await theatre.until(is_true("Ready"), "deleted")
    assert wire.gone == 0
    with wire.cut():
        await theatre.apply("edited", state="Stopped")
        await theatre.stage.kube.delete(API, "GpuPod", "deleted", NAMESPACE)
        await theatre.apply("new")
        await asyncio.to_thread(compact, theatre.stage)
    await theatre.until(lambda pod: phase(pod) == "Stopped", "edited")
    await theatre.admin.wait_gone("GpuPod", "deleted", namespace=NAMESPACE, timeout=60)
    new = pod_id(await theatre.until(is_true("Ready"), "new"))
    assert wire.gone >= 1, "the watch was answered 410"
    assert {p["podId"] for p in await theatre.alive()} == {edited, new}
    assert await theatre.creates() == 3
    assert theatre.stage.operator is not None
    assert theatre.stage.operator.returncode is None, "the same process"
    await theatre.apply("edited", state="Running")
    assert pod_id(await theatre.until(is_true("Ready"), "edited")) == edited


async def test_an_expired_watch_with_nothing_changed_changes_nothing(theatre: Theatre, wire: Wire) -> None:
    await theatre.apply()
    ready = await theatre.until(is_true("Ready"))
    before = await theatre.mutations()
    with wire.cut():
        # something else was written since, so the operator's own place in history is gone
        await theatre.admin.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}, namespace=NAMESPACE
        )
        await asyncio.to_thread(compact, theatre.stage)
    async with asyncio.timeout(60):
        while wire.gone == 0:
            await asyncio.sleep(0.1)
    await theatre.lists(2)
    after = await theatre.until(is_true("Ready"))
    assert after["status"]["attempt"] == ready["status"]["attempt"]
    assert await theatre.mutations() == before


async def test_a_leader_cut_off_from_the_api_server_leaves_the_work_to_the_standby(theatre: Theatre) -> None:
    """It still reaches the vendor, and that is where it must not act."""
    assert theatre.stage.operator is not None
    await theatre.stage.operator.end()
    async with Wire(theatre.stage) as line:
        old = await line.start_operator()
        await theatre.apply()
        first = pod_id(await theatre.until(is_true("Ready")))
        new = await theatre.stage.start_operator()
        with line.cut():
            await theatre.stage.sim("POST", f"/_sim/wedge?pod={first}")
            assert await ended(old) == 0, "it cannot renew the Lease, and ends"
            moved = await theatre.until(lambda pod: pod_id(pod) not in (None, first) and is_true("Ready")(pod))
    assert new.returncode is None
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(moved)]
    assert await theatre.creates() == 2
    assert moved["status"]["migrations"] == 1
