"""Argo CD's health of our kinds, by a Lua interpreter, over every status that the operator writes in its own tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lupa
import pytest
import yaml

from gpupod_operator.api.base import dump
from gpupod_operator.api.phases import Phase
from podkit.driver import Driver, spec_of

DATA = yaml.safe_load((Path(__file__).parents[3] / "manifests" / "argocd" / "argocd-cm.yaml").read_text())["data"]
DISPOSABLE = {"remediation": {"artifacts": "Disposable"}}


def health(kind: str, obj: dict[str, Any]) -> tuple[str, str]:
    lua = lupa.LuaRuntime(unpack_returned_tuples=True)
    script = DATA[f"resource.customizations.health.gpupod.dev_{kind}"]
    judge = lua.eval(f"function(obj)\n{script}\nend")
    found = judge(lua.table_from(obj, recursive=True))
    return found["status"], found["message"]


def gpupod(status: dict[str, Any] | None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"generation": 1}, "spec": spec, **({"status": status} if status is not None else {})}


def conditions(**told: str) -> list[dict[str, str]]:
    return [{"type": kind, "status": value, "message": f"{kind} {value}"} for kind, value in told.items()]


@pytest.mark.parametrize(
    ("obj", "wanted"),
    [
        (gpupod(None), "Progressing"),
        (gpupod({"conditions": conditions(Ready="True", Stalled="False"), "message": "m"}), "Healthy"),
        (gpupod({"conditions": conditions(Ready="False", Stalled="True"), "message": "m"}), "Degraded"),
        (gpupod({"conditions": conditions(Ready="True", Stalled="True"), "message": "m"}), "Degraded"),
        (gpupod({"conditions": conditions(Ready="False"), "phase": "Stopped", "message": "m"}), "Suspended"),
        (gpupod({"conditions": conditions(Ready="True")}, paused=True), "Suspended"),
        (gpupod({"conditions": conditions(Ready="True"), "observedGeneration": 0}), "Progressing"),
    ],
)
def test_a_gpupod_is_judged_by_its_conditions(obj: dict[str, Any], wanted: str) -> None:
    assert health("GpuPod", obj)[0] == wanted


@pytest.mark.parametrize("phase", Phase)
def test_no_phase_alone_makes_a_gpupod_healthy(phase: Phase) -> None:
    assert health("GpuPod", gpupod({"conditions": conditions(Ready="False"), "phase": str(phase)}))[0] != "Healthy"


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ({"Ready": "True", "Stalled": "False"}, "Healthy"),
        ({"Ready": "False", "Stalled": "True"}, "Degraded"),
        ({"Ready": "Unknown"}, "Progressing"),
    ],
)
def test_a_cell_is_judged_by_its_conditions(told: dict[str, str], wanted: str) -> None:
    assert health("SweepCell", {"metadata": {}, "status": {"conditions": conditions(**told)}})[0] == wanted


def wedged(d: Driver) -> None:
    d.cloud.wedge("pod-1")
    d.run(limit=timedelta(hours=1))


def stopped(d: Driver) -> None:
    d.edit(state="Stopped")
    d.run(limit=timedelta(minutes=5))
    d.edit(state="Running")
    d.run(limit=timedelta(minutes=5))


def stopped_outside(d: Driver) -> None:
    d.cloud.exit("pod-1")
    d.run(limit=timedelta(minutes=5))


def deleted(d: Driver) -> None:
    d.deleting = True
    d.run(limit=timedelta(minutes=10))


def expired(d: Driver) -> None:
    d.edit(spend={"ttl": timedelta(minutes=5)})
    d.run(limit=timedelta(minutes=30))


LIVES: tuple[Callable[[Driver], None], ...] = (wedged, stopped, stopped_outside, deleted, expired)


def statuses() -> Iterator[dict[str, Any]]:
    for live in LIVES:
        d = Driver(spec_of(**DISPOSABLE, workload={"command": ["run"]}))
        d.run(limit=timedelta(minutes=5))
        live(d)
        yield from (dump(plan.status) for plan in d.plans)


def test_every_status_of_many_lives_has_a_health_that_fits_it() -> None:
    seen = set()
    for status in statuses():
        if not status.get("conditions"):
            continue
        is_true = {c["type"] for c in status["conditions"] if c["status"] == "True"}
        found, message = health("GpuPod", gpupod(status))
        seen.add(status["phase"])
        assert message == status["message"]
        assert (found == "Degraded") == ("Stalled" in is_true)
        if found == "Healthy":
            assert "Ready" in is_true
        if "Reconciling" in is_true:
            assert found != "Healthy"
    assert {"Pending", "Provisioning", "Ready", "Stopped", "Stopping", "Terminating", "Unreachable"} <= seen
