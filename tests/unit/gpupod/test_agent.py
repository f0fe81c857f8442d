"""The cell agent: installed once per start and input, again with patience, and never in the way of the work."""

from __future__ import annotations

from datetime import timedelta

from gatekit.cells import agent_cell
from gpupod_operator.api.reasons import Reason
from podkit.driver import Driver, spec_of


def with_cells(*uids: str, **host) -> Driver:
    d = Driver(spec_of(workload={"command": ["run"]}))
    d.run(until=lambda: d.pod_id is not None)
    for uid in uids:
        d.declare(uid, done=False)
    d.host().agent_running = False
    for name, value in host.items():
        setattr(d.host(), name, value)
    return d


def installs(d: Driver) -> int:
    return d.host("pod-1").acts.count("install")


def test_it_is_installed_once_and_not_again_for_progress():
    d = with_cells("c1")
    d.run(limit=timedelta(hours=1))
    assert installs(d) == 1
    assert d.condition("ArtifactsSafe")[1] != Reason.AGENT_UNAVAILABLE


def test_a_rotated_token_reaches_the_agent():
    d = with_cells("c1")
    d.run(limit=timedelta(minutes=10))
    d.tokens["c1"] = "new"
    d.run(limit=timedelta(minutes=30))
    assert installs(d) == 2


def test_a_new_cell_reaches_the_agent():
    d = with_cells("c1")
    d.run(limit=timedelta(minutes=10))
    d.declare("c2", done=False)
    d.run(limit=timedelta(minutes=30))
    assert installs(d) == 2


def test_an_install_that_fails_does_not_idle_a_paid_pod_and_is_tried_again_with_patience():
    d = with_cells("c1", install_fails="no space left on the pod")
    d.run(until=lambda: d.status.workload is not None and d.status.workload.state == "Running")
    d.run(limit=timedelta(hours=1))
    assert d.host().acts.count("launch") == 1
    assert 6 <= installs(d) <= 20
    assert d.condition("ArtifactsSafe") == ("Unknown", Reason.AGENT_UNAVAILABLE)
    told = next(c.message for c in d.status.conditions if c.type == "ArtifactsSafe")
    assert "no space left on the pod" in told
    d.host().install_fails = None
    d.run(limit=timedelta(minutes=10))
    assert d.condition("ArtifactsSafe")[1] == Reason.CELLS_UNVERIFIED


def test_an_agent_that_does_not_stay_up_is_not_installed_at_every_look():
    d = with_cells("c1", agent_starts=False, agent_problem="Python 3.8 is too old")
    d.run(until=lambda: d.status.workload is not None and d.status.workload.state == "Running")
    d.run(limit=timedelta(hours=2))
    assert installs(d) <= 32
    assert d.condition("ArtifactsSafe") == ("Unknown", Reason.AGENT_UNAVAILABLE)
    writes = d.writes
    d.run(limit=timedelta(hours=1))
    assert d.writes - writes <= 26, "a write per install, not per look"


def test_a_restarted_operator_does_not_install_anew_what_runs():
    d = with_cells("c1")
    d.run(limit=timedelta(minutes=10))
    d.restart()
    d.run(limit=timedelta(minutes=10))
    assert installs(d) == 1


def test_what_was_repaired_reaches_the_agent_while_a_deletion_is_held():
    d = with_cells("c1")
    d.run(limit=timedelta(minutes=10))
    d.declare("c1", done=True, state="Blocked")
    d.host().cells["c1"] = agent_cell("c1", "Blocked", done_seen=True, error_message="the token is refused")
    d.deleting = True
    d.run(limit=timedelta(minutes=5))
    assert not d.released
    assert "the token is refused" in d.status.message
    before = installs(d)
    d.tokens["c1"] = "repaired"
    d.run(limit=timedelta(minutes=5))
    assert installs(d) == before + 1
    assert d.host().acts.count("launch") == 1, "nothing is launched on a pod that is to go"
