"""The stop timer as a process: it stops its own pod at the simulated RunPod, with that pod's key, once all is saved."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cellkit.pod import TOKEN, Pod, ours
from gpupod_cell.process import start_of
from gpupod_rehearsal.hub.simulator import HubSimulator
from gpupod_rehearsal.runpod.pod import SimPod, Status
from gpupod_rehearsal.runpod.simulator import RunPodSimulator

pytest_plugins = ["cellkit.fixtures"]

STARTED = "2026-12-01T10:00:00+00:00"
BODY = {
    "name": "sweep",
    "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 1},
    "image": "runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04",
}


class Rented:
    """The pod at the vendor, and the disk with its agent."""

    def __init__(self, vendor: RunPodSimulator, sim: SimPod, disk: Pod) -> None:
        self.vendor, self.sim, self.disk = vendor, sim, disk

    @property
    def status(self) -> Status:
        return self.vendor.cloud.pods[self.sim.id].status

    @property
    def timer(self) -> dict[str, Any]:
        return self.disk.state()["agent"].get("timer") or {}

    def stops(self) -> list[str | None]:
        """The keys with which a stop of this pod was asked for."""
        return [e.key for e in self.vendor.journal.entries if e.path == f"/v2/pods/{self.sim.id}/action"]

    def order(self, seconds: float, **changes: Any) -> None:
        """The orders of this moment, with a timer that is due in so many seconds."""
        now = datetime.now(UTC)
        timer = {
            "deadline": (now + timedelta(seconds=seconds)).isoformat(),
            "writtenAt": now.isoformat(),
            "podStartedAt": STARTED,
            "ours": True,
            **changes,
        }
        whole = {"format": 1, "podId": self.sim.id, "attempt": "a1", "cells": self.disk.cells, "timer": timer}
        partial = self.disk.root / "cells.json.new"
        partial.write_text(json.dumps(whole))
        partial.replace(self.disk.root / "cells.json")

    async def watch(self) -> None:
        await self.disk.start("watch", "--every", "0.05")


@pytest.fixture
async def vendor() -> AsyncIterator[RunPodSimulator]:
    async with RunPodSimulator() as running:
        yield running


@pytest.fixture
async def rented(vendor: RunPodSimulator, pod: Pod, hub: HubSimulator, monkeypatch: pytest.MonkeyPatch) -> Rented:
    sim = vendor.cloud.pods[(await _create(vendor))["id"]]
    monkeypatch.setenv("RUNPOD_POD_ID", sim.id)
    monkeypatch.setenv("RUNPOD_API_KEY", sim.key)
    (pod.root / "agent" / "settings.json").write_text(
        json.dumps({"hubEndpoint": hub.url, "runpodEndpoint": vendor.url})
    )
    return Rented(vendor, sim, pod)


async def _create(vendor: RunPodSimulator) -> Any:
    status, body = await _ask(vendor, "POST", "/v2/pods", vendor.key(), BODY)
    assert status == 201, body
    return body


async def _ask(vendor: RunPodSimulator, method: str, path: str, key: str, body: Any = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}", "User-Agent": "test"}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, vendor.url + path, json=body, headers=headers) as answer,
    ):
        return answer.status, await answer.json(content_type=None) if answer.status != 204 else None


async def test_a_pod_whose_cells_are_saved_stops_itself_at_the_deadline_and_not_before(
    rented: Rented, hub: HubSimulator
) -> None:
    rented.disk.order("c1")
    rented.disk.produce("c1")
    rented.order(3600)
    await rented.watch()
    await rented.disk.until(lambda: ours(hub) and rented.timer.get("state") == "Armed")
    assert rented.stops() == []
    rented.order(0)
    await rented.disk.until(lambda: rented.status is Status.EXITED)
    assert rented.stops() == [f"pod:{rented.sim.id}"]
    assert [c.title for c in ours(hub)] == ["cell c1"]


async def test_an_unsaved_cell_keeps_the_pod_and_once_it_is_saved_the_pod_stops(
    rented: Rented, hub: HubSimulator
) -> None:
    rented.disk.order("c1")
    rented.disk.give_token("uid-c1", "hf_expired")
    rented.disk.produce("c1")
    rented.order(0)
    await rented.watch()
    await rented.disk.until(lambda: rented.timer.get("state") == "Held")
    assert "c1 is finished and not on the Hub" in rented.timer["message"]
    assert (rented.status, rented.stops()) == (rented.sim.status, [])
    rented.disk.give_token("uid-c1", TOKEN)
    await rented.disk.until(lambda: rented.status is Status.EXITED)
    assert [c.title for c in ours(hub)] == ["cell c1"]


async def test_the_workload_is_ended_first_and_what_it_finishes_then_is_saved(
    rented: Rented, hub: HubSimulator
) -> None:
    rented.disk.order("c1")
    rented.disk.order("c2")
    rented.disk.produce("c2", done=False)
    last = rented.disk.produce("c1", done=False)
    work = subprocess.Popen(
        ["bash", "-c", f"trap 'echo done > {last}/DONE; exit 143' TERM; while :; do read -rt 0.1 <> <(:); done"],
        start_new_session=True,
    )
    try:
        record = {"pid": work.pid, "pgid": work.pid, "procStart": start_of(work.pid), "podStartedAt": STARTED}
        (rented.disk.root / "a1").mkdir()
        (rented.disk.root / "a1" / "launch.json").write_text(json.dumps(record))
        rented.order(0)
        await rented.watch()
        await rented.disk.until(lambda: rented.status is Status.EXITED)
        assert work.wait(10) == 143
        assert [c.title for c in ours(hub)] == ["cell c1"]
    finally:
        work.kill()
        work.wait()


async def test_a_process_of_an_earlier_start_is_left_alone(rented: Rented, tmp_path: Path) -> None:
    rented.disk.order("c1")
    other = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        record = {"pid": other.pid, "pgid": other.pid, "procStart": start_of(other.pid), "podStartedAt": "2026-01-01"}
        (rented.disk.root / "a1").mkdir()
        (rented.disk.root / "a1" / "launch.json").write_text(json.dumps(record))
        rented.order(0)
        await rented.watch()
        await rented.disk.until(lambda: rented.status is Status.EXITED)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


async def test_a_restarted_agent_goes_on_with_the_same_deadline(rented: Rented) -> None:
    rented.disk.order("c1")
    rented.order(2)
    first = await rented.disk.start("watch", "--every", "0.05")
    await rented.disk.until(lambda: rented.timer.get("state") == "Armed")
    first.kill()
    await first.wait()
    await rented.watch()
    await rented.disk.until(lambda: rented.status is Status.EXITED)


async def test_orders_without_a_timer_take_it_back(rented: Rented) -> None:
    rented.disk.order("c1")
    rented.order(3600)
    await rented.watch()
    await rented.disk.until(lambda: rented.timer.get("state") == "Armed")
    rented.disk.write_orders()
    await rented.disk.until(lambda: rented.timer == {})


async def test_a_vendor_that_is_away_is_asked_again_and_the_key_is_shown_nowhere(rented: Rented) -> None:
    (rented.disk.root / "agent" / "settings.json").write_text(json.dumps({"runpodEndpoint": "http://127.0.0.1:9"}))
    rented.disk.order("c1")
    rented.order(0)
    await rented.watch()
    await rented.disk.until(lambda: "could not be asked" in (rented.timer.get("message") or ""))
    assert rented.sim.key not in json.dumps(rented.disk.state())
    assert rented.status is not Status.EXITED


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v2/pods/{other}/action", {"action": "stop"}),
        ("DELETE", "/v2/pods/{other}", None),
        ("GET", "/v2/pods/{other}", None),
        ("PATCH", "/v2/pods/{own}", {"name": "x"}),
        ("POST", "/v2/pods", BODY),
        ("GET", "/v2/pods", None),
        ("GET", "/v2/billing/balance", None),
    ],
)
async def test_the_key_of_a_pod_opens_nothing_else(vendor: RunPodSimulator, method: str, path: str, body: Any) -> None:
    own, other = (await _create(vendor))["id"], (await _create(vendor))["id"]
    key = vendor.cloud.pods[own].key
    status, _ = await _ask(vendor, method, path.format(own=own, other=other), key, body)
    assert status == 403
    assert (await _ask(vendor, "GET", f"/v2/pods/{own}", key))[0] == 200
    assert all(vendor.cloud.pods[p].status is not Status.EXITED for p in (own, other))
