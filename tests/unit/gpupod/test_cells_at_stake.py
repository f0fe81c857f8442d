"""Cells hold every end until they are safe, and the agent that takes them is put on the pod before the work."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from gatekit.cells import agent_cell, commit, listing, manifest_bytes
from gatekit.cells import status as cell_status
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.known import Known, Unknown
from podkit.driver import TICK, Crashed, Driver, spec_of

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


def test_unverified_cells_hold_a_deletion_and_the_message_names_them():
    d = working()
    d.declare(state="Produced", done=True)
    d.host().cells["c1"] = agent_cell("c1", "Failed", done_seen=True, error_message="quota")
    d.run(limit=timedelta(minutes=1))
    d.deleting = True
    d.run(limit=timedelta(hours=1))
    assert not d.released
    assert d.cloud.sent("delete") == []
    assert "c1" in d.status.message
    assert "abandon-data" in d.status.message


def test_a_hub_that_cannot_be_read_holds_every_end():
    d = working()
    d.declare(state="Uploaded", done=True)
    d.hub["c1"] = Unknown("503")
    d.deleting = True
    d.run(limit=timedelta(hours=1))
    assert not d.released
    assert d.cloud.sent("delete") == []
    verified(d)
    d.run(until=lambda: d.released, limit=timedelta(minutes=10))
    assert d.status.receipt.verified == 1


def test_the_agent_is_put_on_the_pod_before_the_work():
    d = Driver(spec_of(workload=WORK))
    d.declare("c1", state="Pending")
    d.run(until=lambda: d.status.workload is not None and d.status.workload.state == "Running")
    assert d.host("pod-1").acts == ["install", "launch"]
    d.run(limit=timedelta(minutes=10))
    assert d.host("pod-1").acts == ["install", "launch"]


def test_an_agent_that_never_comes_up_is_not_installed_in_a_busy_loop():
    d = Driver(spec_of(workload=WORK))
    d.declare("c1", state="Pending")
    d.host("pod-1").agent_starts = False
    d.run(limit=timedelta(minutes=10))
    assert d.host("pod-1").acts.count("install") <= 42
    assert launches(d) == 1


def test_an_agent_that_cannot_run_here_is_told_and_the_work_goes_on():
    d = Driver(spec_of(workload=WORK))
    d.declare("c1", state="Pending")
    d.host("pod-1").agent_starts = False
    d.host("pod-1").agent_problem = "Python 3.8 and no venv"
    d.run(limit=timedelta(minutes=10))
    assert d.condition("ArtifactsSafe") == ("Unknown", Reason.AGENT_UNAVAILABLE)
    assert launches(d) == 1


def test_a_drain_whose_answer_died_with_the_operator_is_not_waited_for_anew():
    d = working()
    d.declare(state="Producing", done=False)
    d.host().cells["c1"] = agent_cell("c1", "Producing")
    d.hub["c1"] = Known(listing("c2", manifest=None, at=d.now + timedelta(hours=9)))
    d.run(limit=timedelta(minutes=1))
    d.deleting = True
    while "drain" not in d.host().acts:
        d.crash = "answer"
        try:
            d.settle()
        except Crashed:
            continue
        d.cloud.now += TICK
        d.cloud.tick()
    d.crash = None
    began = d.now
    d.run(until=lambda: d.cloud.sent("delete") != [], limit=timedelta(minutes=5))
    assert d.now - began <= 2 * TICK
