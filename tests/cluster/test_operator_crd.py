"""The kind itself is deleted, with all objects in it: nothing bills on unseen."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterkit.fixtures import apply_crd
from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.demo.manifests import crds
from gpupod_rehearsal.demo.stage import NAMESPACE
from worldkit.deployment import ended
from worldkit.fixtures import Theatre, is_true, pod_id

CRD = "CustomResourceDefinition"
GPUPODS_CRD = "gpupods.gpupod.dev"


async def put_back(theatre: Theatre) -> None:
    """For the checker, which looks at all objects of the kind: there are none."""
    for manifest in crds():
        await apply_crd(theatre.admin, manifest)


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """One of the test's own: other tests need the kinds."""
    with ControlPlane.start(tmp_path / "control-plane", progress=lambda _: None) as plane:
        yield plane


async def test_a_deleted_crd_goes_once_every_pod_has_ended_by_its_policy(theatre: Theatre) -> None:
    for name in ("one", "two"):
        await theatre.apply(name)
        await theatre.until(is_true("Ready"), name)
    await theatre.admin.delete(CRD, GPUPODS_CRD)
    await theatre.admin.wait_gone(CRD, GPUPODS_CRD, timeout=60)
    assert await theatre.alive() == []
    await put_back(theatre)


async def torn_out(theatre: Theatre) -> None:
    """The kind and its objects are gone before any operator could act."""
    await theatre.admin.patch("GpuPod", "one", {"metadata": {"finalizers": None}}, namespace=NAMESPACE)
    await theatre.admin.delete(CRD, GPUPODS_CRD)
    await theatre.admin.wait_gone(CRD, GPUPODS_CRD, timeout=60)


async def quiet(theatre: Theatre) -> None:
    """Until the running process has had the time for a create, were it to make one: two lists, or its end."""
    child = theatre.stage.operator
    assert child is not None
    looking = asyncio.create_task(theatre.lists(2))
    await asyncio.wait({looking, asyncio.create_task(child.wait())}, return_when=asyncio.FIRST_COMPLETED)
    looking.cancel()


async def told(theatre: Theatre, words: str) -> str:
    """The first line of a log with these words. A log has no watch."""
    async with asyncio.timeout(40):
        while True:
            found = [line for line in theatre.logs().splitlines() if words in line]
            if found:
                return found[0]
            await asyncio.sleep(0.1)


async def test_a_crd_that_is_torn_out_under_the_operator_leaves_a_pod_that_is_told_with_its_price(
    theatre: Theatre,
) -> None:
    """And an operator that starts without the kind says what bills, and ends."""
    await theatre.apply()
    pod = pod_id(await theatre.until(is_true("Ready")))
    theatre.released.add(str(pod))
    assert theatre.stage.operator is not None
    os.kill(theatre.stage.operator.pid, signal.SIGSTOP)
    await torn_out(theatre)
    os.kill(theatre.stage.operator.pid, signal.SIGCONT)
    # a young pod is no orphan yet; whether the process goes on without the kind or ends is kopf's to say
    await quiet(theatre)
    await theatre.stage.operator.end()
    assert await ended(await theatre.stage.start_operator()) == 2
    assert "$2.6968/h" in await told(theatre, f"pod {pod} (")
    assert await told(theatre, f"the CRD {GPUPODS_CRD} is not in this cluster: kubectl apply")
    assert [p["podId"] for p in await theatre.alive()] == [pod]
    assert await theatre.creates() == 1
    await put_back(theatre)
