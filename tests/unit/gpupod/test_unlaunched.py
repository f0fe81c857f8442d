"""A pod that is Ready and on which nothing is launched is told once for each of its starts, with its price."""

from __future__ import annotations

from datetime import timedelta

from gpupod_operator.api.conditions import find_condition
from podkit.driver import Driver
from podkit.world import spec_of

HOUR = timedelta(hours=1)


def told(d: Driver) -> list[str]:
    return [t.message for plan in d.plans for t in plan.transitions if t.reason == "Unlaunched"]


def ready(**changes) -> Driver:
    d = Driver(spec_of(**changes))
    d.run(until=lambda: d.status.phase == "Ready")
    return d


def test_it_is_told_after_the_time_and_not_before():
    d = ready()
    d.run(limit=timedelta(minutes=59))
    assert told(d) == []
    d.run(limit=timedelta(minutes=3))
    (words,) = told(d)
    assert "pod-1" in words
    assert "bills $" in words
    assert "workload.command is not set" in words
    condition = find_condition(d.status.conditions, "WorkloadRunning")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "Unlaunched")
    assert d.status.phase == "Ready", "an alert, and nothing is ended for it"


def test_once_for_a_start_also_over_a_restart_and_a_lost_port():
    d = ready(spend={"unlaunchedAfter": timedelta(minutes=10)})
    d.run(limit=timedelta(minutes=12))
    assert len(told(d)) == 1
    d.restart()
    d.run(limit=HOUR)
    d.cloud.listing = "unknown"
    d.run(limit=timedelta(minutes=5))
    d.cloud.listing = "complete"
    d.run(limit=HOUR)
    assert len(told(d)) == 1


def test_each_start_is_told_anew():
    d = ready(spend={"unlaunchedAfter": timedelta(minutes=10)})
    d.run(limit=timedelta(minutes=12))
    d.edit(state="Stopped")
    d.run(until=lambda: d.status.phase == "Stopped")
    d.edit(state="Running")
    d.run(until=lambda: d.status.phase == "Ready")
    assert len(told(d)) == 1
    d.run(limit=timedelta(minutes=12))
    assert len(told(d)) == 2


def test_a_launched_workload_is_never_told():
    d = ready(workload={"command": ["run"]})
    d.run(limit=3 * HOUR)
    assert told(d) == []


def test_a_launch_ends_it():
    d = ready(spend={"unlaunchedAfter": timedelta(minutes=10)})
    d.run(limit=timedelta(minutes=12))
    d.edit(workload={"command": ["run"]})
    d.run(until=lambda: d.status.workload is not None and d.status.workload.state == "Running")
    condition = find_condition(d.status.conditions, "WorkloadRunning")
    assert condition is not None
    assert condition.status == "True"
