"""The operator dies for good: pods stop themselves at their deadline, save one that holds what is on no Hub yet."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.demo.stage import NAMESPACE
from worldkit.fixtures import Theatre, is_true, performing, phase, pod_id
from worldkit.sweep import cell, cell_until, disk, finish, gpupod, repository

THEIRS = "somebody/theirs"
GRACE = timedelta(seconds=8)


def timer(pod: dict[str, Any] | None) -> dict[str, Any]:
    return (((pod or {}).get("status") or {}).get("attempt") or {}).get("timer") or {}


def manifest(name: str, ttl: str) -> dict[str, Any]:
    return gpupod((finish(f"of-{name}"),), name, spend={"ttl": ttl})


async def shorten(theatre: Theatre, name: str, until: datetime) -> None:
    """Give the pod a `ttl` that ends about then, and wait until its agent holds the new deadline."""
    found = await theatre.admin.find("GpuPod", name, namespace=NAMESPACE)
    assert found is not None
    created = datetime.fromisoformat(found["status"]["attempt"]["createdAt"])
    seconds = int((until - created).total_seconds())
    await theatre.stage.kube.apply(manifest(name, f"{seconds}s"), NAMESPACE)
    before = timer(found)["deadline"]
    await theatre.until(lambda p: timer(p).get("armed") is True and timer(p)["deadline"] < before, name)


async def test_pods_of_a_dead_operator_stop_themselves_unless_something_on_them_is_unsaved(
    control_plane: ControlPlane,
) -> None:
    async with performing(control_plane, args=("--timer-grace", f"{GRACE.seconds}s")) as theatre:
        stage = theatre.stage
        await repository(stage, THEIRS)
        for name, repo in (("saved", None), ("stuck", THEIRS)):
            await stage.kube.apply(cell(f"of-{name}", pod=name, **({"repo": repo} if repo else {})), NAMESPACE)
            await stage.kube.apply(manifest(name, "10m"), NAMESPACE)
        saved = await theatre.until(lambda p: timer(p).get("armed") is True, "saved")
        stuck = await theatre.until(lambda p: bool(timer(p).get("deadline")), "stuck")
        await cell_until(theatre, "of-saved", is_true("Verified"))
        await theatre.until(lambda p: (p or {})["status"].get("cost", {}).get("maxBurn") is not None, "saved")
        until = datetime.now(UTC) + timedelta(seconds=8)
        for name in ("saved", "stuck"):
            await shorten(theatre, name, until)
        assert stage.operator is not None
        stage.operator.kill()
        await stage.operator.wait()
        ids = {"saved": pod_id(saved) or "", "stuck": pod_id(stuck) or ""}
        await theatre.seen(lambda pods: {p["podId"]: p["status"] for p in pods}[ids["saved"]] == "EXITED")
        assert datetime.now(UTC) >= until + GRACE - timedelta(seconds=2)
        state = json.loads((await disk(theatre, ids["stuck"]) / ".gpupod" / "agent" / "state.json").read_text())
        assert state["agent"]["timer"]["state"] == "Held"
        stops = [r for r in await theatre.mutations() if r["path"].endswith("/action")]
        assert [r["key"] for r in stops] == [f"pod:{ids['saved']}"]
        assert {p["podId"]: p["status"] for p in await theatre.alive()}[ids["stuck"]] == "RUNNING"

        await stage.start_operator()
        ended = await theatre.until(lambda p: phase(p) == "Stopped", "saved")
        assert ended["status"]["ended"]["reason"] == "spend.ttl is over; the timer on the pod stopped it"
        assert {p["podId"]: p["status"] for p in await theatre.alive()}[ids["stuck"]] == "RUNNING"
