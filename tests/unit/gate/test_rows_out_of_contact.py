"""Rows of the gate's table for a pod out of contact or stopped."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

import pytest

from gatekit.cells import (
    NOW,
    POD,
    STARTED,
    commit,
    listing,
    manifest_bytes,
    status,
)
from gatekit.questions import (
    cell,
    no_contact,
    out_of_contact,
    pod_spec,
    pod_status,
    provider_pod,
    question,
)
from gatekit.rows import ALL, PERSISTENT, RERUN, finished, names, unfinished
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import Blocked, GateReason, NeedsFacts, Safe, Undecided, judge
from gpupod_operator.core.known import Known
from gpupod_operator.core.provider import ProviderState
from gpupod_operator.core.shell import ShellReading, SshClass


class TestOutOfContact:
    @pytest.mark.parametrize("reason", ALL)
    def test_a_cell_in_flight_is_fine_after_its_progress_deadline(self, reason):
        verdict = judge(out_of_contact(reason, cells=Known((cell(agent=None), unfinished(agent=None)))))
        assert isinstance(verdict, Safe)
        assert names(verdict) == ((("c2",), ()) if reason in RERUN else ((), ("c2",)))
        assert "out of contact for 60 min; no commit since" in (verdict.receipt.policy or "")

    @pytest.mark.parametrize("minutes", [0, 10])
    def test_before_its_progress_deadline_it_waits_and_says_until_when(self, minutes):
        lost = NOW - timedelta(minutes=minutes)
        verdict = judge(out_of_contact(cells=Known((unfinished(agent=None),)), contact_lost_at=lost))
        assert isinstance(verdict, Blocked)
        assert verdict.blocks[0].reason is Reason.CELLS_IN_FLIGHT
        assert f"{lost + timedelta(minutes=10):%H:%M:%S}" in verdict.why

    def test_contact_lost_in_this_very_pass_is_unknown(self):
        verdict = judge(out_of_contact(cells=Known((unfinished(agent=None),)), contact_lost_at=None))
        assert isinstance(verdict, Undecided)

    def test_in_flight_block_holds_it(self):
        spec = pod_spec(remediation={"inFlight": "Block"})
        assert isinstance(judge(out_of_contact(spec=spec, cells=Known((unfinished(agent=None),)))), Blocked)

    def test_a_commit_after_the_loss_proves_the_agent_alive(self):
        late = commit("c1", manifest_bytes("c1"), oid="abc", at=NOW - timedelta(minutes=20))
        cells = (cell(agent=None, commits=Known((late,))), unfinished(agent=None))
        verdict = judge(out_of_contact(cells=Known(cells)))
        assert isinstance(verdict, Safe)
        assert "commit abc at 11:40:00Z shows the agent alive" in (verdict.receipt.policy or "")

    @pytest.mark.parametrize("phase", ["Produced", "Uploading", "Partial"])
    def test_a_finished_cell_blocks_with_its_missing_files_and_the_edit(self, phase):
        held = finished(status=status(phase, done=True), agent=None, name="cell-07")
        verdict = judge(out_of_contact(cells=Known((held,))))
        assert isinstance(verdict, Blocked)
        block = verdict.blocks[0]
        assert (block.cell, block.reason) == ("cell-07", Reason.CELLS_UNVERIFIED)
        assert block.missing == ("eval/metrics.json",)
        assert f'abandon-data: "{POD}' in block.edit

    @pytest.mark.parametrize("phase", ["Blocked", "Failed"])
    def test_blocked_or_failed_counts_by_its_done_file(self, phase):
        with_done = finished(status=status(phase, done=True), agent=None)
        assert isinstance(judge(out_of_contact(cells=Known((with_done,)))), Blocked)
        without = unfinished(status=status(phase, done=False), agent=None)
        assert isinstance(judge(out_of_contact(cells=Known((without,)))), Safe)

    @pytest.mark.parametrize("pod_id", ["pod-0", None])
    @pytest.mark.parametrize("phase", ["Pending", "Producing", "Verified", "Lost", "Failed"])
    def test_a_cell_never_read_on_this_pod_is_unknown_whatever_its_phase(self, pod_id, phase):
        never = unfinished(status=status(phase, pod_id=pod_id, done=False), agent=None)
        assert isinstance(judge(out_of_contact(cells=Known((never,)))), Undecided)

    def test_a_reading_of_an_earlier_start_says_nothing_when_the_image_runs_the_workload(self):
        later = Known(provider_pod(started_at=STARTED + timedelta(hours=1)))
        spec = pod_spec(container={"cmd": ["train"]})
        asked = out_of_contact(spec=spec, pod=later, cells=Known((unfinished(agent=None),)))
        assert isinstance(judge(asked), Undecided)
        ours = out_of_contact(pod=later, cells=Known((unfinished(agent=None),)))
        assert isinstance(judge(ours), Safe)

    def test_files_on_the_hub_that_are_not_all_of_it_block(self):
        part = unfinished(
            agent=None, listing=Known(listing("c2", on_hub={})), commits=Known((commit("c2", manifest_bytes("c2")),))
        )
        verdict = judge(out_of_contact(cells=Known((part,))))
        assert isinstance(verdict, Blocked)
        assert verdict.blocks[0].missing

    @pytest.mark.parametrize("ssh", [c for c in SshClass if c not in (SshClass.OK, SshClass.NO_KEY)])
    def test_no_class_of_failed_session_is_taken_for_contact(self, ssh):
        verdict = judge(out_of_contact(cells=Known((finished(agent=None),)), shell=no_contact(ssh)))
        assert isinstance(verdict, Blocked)


class TestStoppedPod:
    stopped: ClassVar = {
        "pod": Known(provider_pod(state=ProviderState.EXITED, raw_state="EXITED")),
        "status": pod_status(pod={"providerStatus": "EXITED"}),
        "shell": None,
    }

    def test_what_lay_on_the_container_disk_is_gone_with_the_stop_and_is_named(self):
        cells = (unfinished("c2", agent=None), finished("c3", agent=None))
        verdict = judge(question(GateReason.DELETE, cells=Known(cells), **self.stopped))
        assert isinstance(verdict, Safe)
        assert set(verdict.receipt.discarded or ()) == {"c2", "c3"}

    def test_one_word_of_exited_is_not_enough(self):
        once = {**self.stopped, "status": pod_status()}
        assert isinstance(judge(question(GateReason.DELETE, cells=Known((finished(agent=None),)), **once)), Blocked)

    def test_a_finished_cell_on_the_stopped_pods_volume_still_blocks_its_deletion(self):
        spec = pod_spec(volume=PERSISTENT)
        live = {
            **self.stopped,
            "pod": Known(provider_pod(state=ProviderState.EXITED, raw_state="EXITED", persistent_gb=20)),
        }
        held = question(GateReason.DELETE, spec=spec, cells=Known((finished(agent=None),)), **live)
        assert isinstance(judge(held), Blocked)
        free = question(GateReason.DELETE, spec=spec, cells=Known((unfinished(agent=None),)), **live)
        assert isinstance(judge(free), Safe)

    def test_no_listing_is_needed_for_a_disk_that_is_gone(self):
        cells = Known((unfinished(agent=None, listing=None),))
        assert isinstance(judge(question(GateReason.DELETE, cells=cells, **self.stopped)), Safe)


def test_a_visit_is_not_asked_for_where_none_can_succeed():
    asked = question(
        GateReason.DELETE,
        pod=Known(provider_pod(state=ProviderState.ERROR, raw_state="ERROR")),
        shell=None,
        cells=Known((finished(agent=None),)),
    )
    assert not isinstance(judge(asked), NeedsFacts)


def test_a_pod_that_nobody_could_visit_for_want_of_our_key_is_not_out_of_contact():
    unseen = ShellReading(SshClass.NO_KEY, "no key", NOW)
    verdict = judge(out_of_contact(cells=Known((unfinished(),)), shell=unseen))
    assert isinstance(verdict, Undecided)
    assert "could not be visited: no key" in verdict.why
