"""Rows of the gate's table for a pod in contact: drain first, then re-run or discard; and an unreadable Hub."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gatekit.cells import (
    NOW,
    agent_cell,
    status,
)
from gatekit.questions import (
    cell,
    out_of_contact,
    pod_spec,
    pod_status,
    question,
    visit,
)
from gatekit.rows import ALL, DISCARD, RERUN, finished, names, unfinished
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import Blocked, DrainFirst, GateReason, Safe, Undecided, judge
from gpupod_operator.core.known import Known, Unknown


class TestReachableUnfinished:
    @pytest.mark.parametrize("state", ["Pending", "Producing", "Failed", "Blocked"])
    @pytest.mark.parametrize("reason", ALL)
    def test_it_is_rerun_or_discarded_and_listed(self, reason, state):
        verdict = judge(question(reason, cells=Known((cell(), unfinished(state=state)))))
        assert isinstance(verdict, Safe)
        assert names(verdict) == ((("c2",), ()) if reason in RERUN else ((), ("c2",)))

    @pytest.mark.parametrize("reason", ALL)
    def test_a_running_workload_is_drained_first(self, reason):
        cells = (cell(), unfinished())
        verdict = judge(question(reason, cells=Known(cells), shell=visit(*[c.agent for c in cells], live=True)))
        assert isinstance(verdict, DrainFirst)
        assert verdict.cells == ("c2",)

    @pytest.mark.parametrize("reason", RERUN)
    def test_in_flight_block_holds_what_would_be_rerun(self, reason):
        spec = pod_spec(remediation={"inFlight": "Block"})
        verdict = judge(question(reason, spec=spec, cells=Known((unfinished(),))))
        assert isinstance(verdict, Blocked)
        assert "inFlight: Rerun" in verdict.why

    @pytest.mark.parametrize("reason", DISCARD)
    def test_in_flight_block_does_not_hold_what_a_person_or_limit_ends(self, reason):
        spec = pod_spec(remediation={"inFlight": "Block"})
        assert isinstance(judge(question(reason, spec=spec, cells=Known((unfinished(),)))), Safe)

    def test_a_cell_blocked_by_quota_does_not_idle_a_working_pod(self):
        held = finished("c3", "Blocked", agent=agent_cell("c3", "Blocked", done_seen=True, error_message="quota"))
        cells = (unfinished(), held)
        shell = visit(*[c.agent for c in cells], live=True)
        verdict = judge(question(GateReason.EXPIRE, cells=Known(cells), shell=shell))
        assert isinstance(verdict, Blocked)
        assert "quota" in verdict.why
        assert isinstance(judge(question(GateReason.DELETE, cells=Known(cells), shell=shell)), DrainFirst)

    def test_cells_that_the_agent_uploads_do_not_delay_the_drain(self):
        cells = (unfinished(), finished("c3", "Uploading"))
        verdict = judge(question(cells=Known(cells), shell=visit(*[c.agent for c in cells], live=True)))
        assert isinstance(verdict, DrainFirst)
        after = judge(question(cells=Known(cells)))
        assert isinstance(after, Blocked)
        assert after.blocks[0].reason is Reason.UPLOADING

    @pytest.mark.parametrize("foreign", [{"spec": pod_spec(container={"cmd": ["x"]})}, {"created_by_us": False}])
    def test_a_workload_that_we_did_not_launch_is_not_drained(self, foreign):
        for reason in ALL:
            shell = visit(agent_cell("c2", "Producing"), launched=False)
            verdict = judge(question(reason, cells=Known((unfinished(),)), shell=shell, **foreign))
            assert isinstance(verdict, Safe if reason is GateReason.DELETE else Blocked), reason
        pending = judge(question(cells=Known((unfinished(state="Pending"),)), shell=shell, **foreign))
        assert isinstance(pending, Safe)

    def test_the_agent_has_to_look_once_more_after_the_workload_has_ended(self):
        old = visit(agent_cell("c2", "Producing"), heartbeat=NOW - timedelta(minutes=3))
        verdict = judge(question(cells=Known((unfinished(),)), shell=old))
        assert isinstance(verdict, Undecided)
        unrecorded = pod_status(workload={"endedAt": None})
        assert isinstance(judge(question(cells=Known((unfinished(),)), status=unrecorded)), Undecided)

    def test_a_launch_whose_state_is_not_known_is_not_taken_for_dead(self):
        shell = visit(agent_cell("c2", "Producing"), live=None)
        assert isinstance(judge(question(cells=Known((unfinished(),)), shell=shell)), Undecided)

    @pytest.mark.parametrize(
        "agent", [{"running": False}, {"pod_id": "pod-0"}, {"pod_id": None}], ids=["dead", "other pod", "no pod"]
    )
    def test_a_state_file_that_no_agent_of_this_pod_keeps_says_nothing_about_unfinished_cells(self, agent):
        shell = visit(agent_cell("c2", "Pending"), **agent)
        verdict = judge(question(cells=Known((unfinished(state="Pending"),)), shell=shell))
        assert isinstance(verdict, Undecided)
        assert verdict.reason is Reason.AGENT_UNAVAILABLE

    def test_a_cell_that_the_agent_does_not_know_yet_is_unknown(self):
        verdict = judge(question(cells=Known((unfinished(agent=None),)), shell=visit()))
        assert isinstance(verdict, Undecided)

    def test_a_done_file_that_was_seen_and_vanished_is_read_once_more(self):
        gone = unfinished(status=status("Produced", done=True))
        assert isinstance(judge(question(cells=Known((gone,)))), Undecided)


class TestHubUnknown:
    @pytest.mark.parametrize("make", [cell, unfinished, finished])
    @pytest.mark.parametrize("ask", [question, out_of_contact])
    def test_a_hub_that_cannot_be_read_permits_nothing(self, ask, make):
        blind = make(listing=Unknown("503"))
        verdict = judge(ask(cells=Known((blind,))))
        assert isinstance(verdict, Undecided)
        assert "503" in verdict.why
