"""The workload: once per start, again after every start, reset and migration; ends, windows, drains and the agent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gatekit.cells import agent_cell, commit, listing, manifest_bytes
from gatekit.cells import status as cell_status
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.known import Known
from gpupod_operator.core.shell import SshClass
from podkit.driver import Crashed, Driver, spec_of

WORK = {"command": ["run"]}


def working(**changes) -> Driver:
    d = Driver(spec_of(**{"workload": WORK, **changes}))
    d.run(until=lambda: d.status.workload is not None and d.status.workload.state == "Running")
    return d


def launches(d: Driver, pod_id: str = "pod-1") -> int:
    return d.host(pod_id).acts.count("launch")


def verified(d: Driver, uid: str = "c1") -> None:
    """The cell is on the Hub, and everybody knows."""
    manifest = manifest_bytes(uid)
    d.hub[uid] = Known(listing(uid, manifest=manifest, at=d.now + timedelta(hours=9)))
    d.commits[uid] = (commit(uid, manifest),)
    d.host().cells[uid] = agent_cell(uid, "Uploaded")
    d.cells[uid] = replace(d.cells[uid], status=cell_status("Verified", pod_id=d.pod_id, done=True))


def test_it_is_launched_once_and_confirmed_in_a_second_session():
    d = working()
    d.run(limit=timedelta(minutes=10))
    assert launches(d) == 1
    assert d.status.attempt.launch_confirmed
    assert d.condition("WorkloadRunning") == ("True", Reason.RUNNING)


@pytest.mark.parametrize("crash", ["intent", "answer"])
def test_a_crash_around_the_launch_starts_no_second_process(crash):
    d = Driver(spec_of(workload=WORK))
    d.run(until=lambda: d.pod_id is not None)
    d.crash = crash
    with pytest.raises(Crashed):
        d.run()
    d.run(until=lambda: d.status.workload.state == "Running")
    assert len(d.host().launches) == 1


def test_a_launch_whose_answer_was_lost_is_found_running():
    d = Driver(spec_of(workload=WORK))
    d.host("pod-1").lost_answer = True
    d.run(until=lambda: d.status.workload is not None and d.status.workload.state == "Running")
    d.run(limit=timedelta(minutes=5))
    assert len(d.host().launches) == 1


@pytest.mark.parametrize("who", ["operator", "outside"])
def test_it_is_launched_again_after_a_start(who):
    d = working()
    if who == "operator":
        d.edit(state="Stopped", remediation={"artifacts": "Disposable"})
        d.run(until=lambda: d.status.phase == "Stopped")
        d.edit(state="Running")
        d.run(until=lambda: launches(d) == 2)
    else:
        d.cloud.exit("pod-1")
        d.run(limit=timedelta(seconds=30))
        d.host().restart()
        d.cloud.run("pod-1")
    d.run(until=lambda: launches(d) == 2 and d.status.workload.state == "Running")


def test_a_restart_on_the_same_port_between_two_looks_is_seen_and_launched_again():
    d = working()
    d.host().restart()
    d.cloud.now += timedelta(seconds=1)
    d.cloud.change("pod-1", started_at=d.now)
    d.cloud.tick()
    d.run(until=lambda: launches(d) == 2, limit=timedelta(minutes=2))


def test_ssh_failures_are_never_taken_for_its_death():
    d = working()
    d.host().ssh = SshClass.DROPPED
    d.run(limit=timedelta(minutes=30))
    assert d.status.workload.state != "Failed"
    assert d.condition("WorkloadRunning")[0] == "Unknown"
    d.host().ssh = SshClass.OK
    d.run(until=lambda: d.condition("WorkloadRunning")[0] == "True")
    assert launches(d) == 1


def test_a_refused_check_opens_a_window_and_the_pod_is_stopped_when_it_is_over():
    d = Driver(spec_of(workload=WORK, remediation={"artifacts": "Disposable"}, diagnosis={"ttl": "1h"}))
    d.host("pod-1").refuses = "exit code 3: wrong revision"
    d.run(until=lambda: d.status.diagnosis is not None)
    assert d.status.phase == "Diagnosing"
    assert "wrong revision" in d.status.message
    d.run(limit=timedelta(minutes=55))
    assert d.cloud.sent("stop") == []
    assert launches(d) == 1
    d.run(until=lambda: d.status.phase == "Stopped", limit=timedelta(minutes=10))
    assert d.status.ended.act == "Stop"
    d.run(limit=timedelta(hours=2))
    assert [c.verb for c in d.cloud.calls] == ["create", "stop"]


def test_a_window_that_terminates_stays_ended():
    d = working(remediation={"artifacts": "Disposable"}, diagnosis={"ttl": "1h", "onExpiry": "Terminate"})
    d.host().end(1)
    d.run(until=lambda: d.status.phase == "Stopped", limit=timedelta(hours=2))
    d.run(limit=timedelta(hours=1))
    assert [c.verb for c in d.cloud.calls] == ["create", "delete"]
    assert d.status.ended.act == "Delete"
    d.annotations["gpupod.dev/resume"] = "pod-1"
    d.run(until=lambda: d.pod_id == "pod-2" and launches(d, "pod-2") == 1)


def test_a_person_extends_the_window():
    d = working(remediation={"artifacts": "Disposable"}, diagnosis={"ttl": "1h"})
    d.host().end(1)
    d.run(until=lambda: d.status.diagnosis is not None)
    d.edit(diagnosis={"owner": "ada", "until": d.now + timedelta(hours=3)})
    d.run(limit=timedelta(hours=2))
    assert d.cloud.sent("stop") == []
    d.run(until=lambda: d.cloud.sent("stop") != [], limit=timedelta(hours=2))


def test_a_window_without_cells_never_ends_a_pod_that_was_worked_on():
    d = working(diagnosis={"ttl": "1h"})
    d.host().end(1)
    d.run(limit=timedelta(hours=5))
    assert [c.verb for c in d.cloud.calls] == ["create"]


@pytest.mark.parametrize(("policy", "verb"), [("Stop", "stop"), ("Terminate", "delete"), ("Keep", None)])
def test_success_with_every_cell_verified_ends_the_pod_as_asked(policy, verb):
    d = working(workload={"command": ["run"], "onSuccess": policy})
    d.declare(state="Producing", done=False)
    d.run(limit=timedelta(minutes=1))
    verified(d)
    d.host().end(0)
    d.run(limit=timedelta(minutes=10))
    assert [c.verb for c in d.cloud.calls][1:] == ([verb] if verb else [])
    assert (d.status.ended is not None) is (verb is not None)


def test_success_without_cells_ends_nothing():
    d = working()
    d.host().end(0)
    d.run(limit=timedelta(hours=10))
    assert [c.verb for c in d.cloud.calls] == ["create"]


def test_a_resume_after_success_runs_once_and_not_for_ever():
    d = working(workload={"command": ["run"], "onSuccess": "Stop"})
    d.declare(state="Producing", done=False)
    verified(d)
    d.host().end(0)
    d.run(until=lambda: d.status.phase == "Stopped", limit=timedelta(minutes=10))
    d.annotations["gpupod.dev/resume"] = "pod-1"
    d.run(until=lambda: launches(d) == 2, limit=timedelta(minutes=10))
    verified(d)
    d.host().end(0)
    d.run(until=lambda: len(d.cloud.sent("stop")) == 2, limit=timedelta(minutes=10))
    d.run(limit=timedelta(hours=1))
    assert len(d.cloud.sent("start")) == 1
    assert d.status.phase == "Stopped"


def test_a_stop_drains_first_and_a_withdrawn_stop_launches_again():
    d = working()
    d.declare(state="Producing", done=False)
    d.run(limit=timedelta(minutes=1))
    d.host().cells["c1"] = agent_cell("c1", "Produced")
    d.cells["c1"] = replace(d.cells["c1"], status=cell_status("Producing", pod_id="pod-1", done=False))
    d.declare("c2", state="Producing", done=False)
    d.edit(state="Stopped")
    d.run(limit=timedelta(minutes=2))
    assert "drain" in d.host().acts
    assert d.cloud.sent("stop") == []
    d.edit(state="Running")
    d.run(until=lambda: launches(d) == 2 and d.status.workload.state == "Running", limit=timedelta(minutes=2))
    assert d.status.attempt.intent == "None"


def test_a_reset_launches_the_work_again_even_where_its_old_record_survived():
    d = working(remediation={"artifacts": "Disposable"})
    mapping = d.pod.mappings
    d.cloud.change("pod-1", ports=("8888/http",), mappings=())
    d.run(until=lambda: d.cloud.sent("patch") != [], limit=timedelta(minutes=5))
    d.host().end(None)
    d.cloud.change("pod-1", mappings=mapping)
    d.run(until=lambda: launches(d) == 2 and d.status.workload.state == "Running", limit=timedelta(minutes=5))
