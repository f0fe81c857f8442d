"""Each row of the gate's table of cells, accepted and refused."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

import pytest

from gatekit.cells import (
    CONTENT,
    NOW,
    POD,
    STARTED,
    agent_cell,
    cell_spec,
    commit,
    empty_listing,
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
    visit,
)
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import Blocked, DrainFirst, GateAct, GateReason, NeedsFacts, Safe, Undecided, judge
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.provider import ProviderState
from gpupod_operator.core.shell import SshClass

RERUN = [GateReason.MIGRATE, GateReason.REPLACE, GateReason.RESET]
DISCARD = [GateReason.DELETE, GateReason.EXPIRE, GateReason.STOP]
ALL = [*RERUN, *DISCARD]
NETWORK = {"network": {"volumeId": "v1", "path": "/workspace"}}
PERSISTENT = {"persistent": {"sizeGb": 20, "path": "/workspace"}}
NOTHING = Known(empty_listing())


def unfinished(uid: str = "c2", state: str = "Producing", **changes):
    fields = {
        "status": status(state, done=False),
        "listing": NOTHING,
        "commits": Known(()),
        "agent": agent_cell(uid, state),
    }
    return cell(uid, **{**fields, **changes})


def finished(uid: str = "c2", state: str = "Produced", **changes):
    fields = {
        "status": status("Produced", done=True),
        "listing": NOTHING,
        "commits": Known(()),
        "agent": agent_cell(uid, state),
    }
    return cell(uid, **{**fields, **changes})


def names(verdict: Safe) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return verdict.receipt.rerun or (), verdict.receipt.discarded or ()


class TestVerified:
    def test_a_listing_older_than_the_last_known_write_is_not_enough(self):
        newer = agent_cell("c1", "Uploaded", commit_at=NOW + timedelta(seconds=1))
        verdict = judge(question(cells=Known((cell(agent=newer),))))
        assert isinstance(verdict, Blocked)
        assert verdict.blocks[0].cell == "c1"

    def test_out_of_contact_the_recorded_commit_is_the_last_known_write(self):
        late = status("Verified", done=True, commit={"oid": "x", "at": NOW + timedelta(seconds=1)})
        assert isinstance(judge(out_of_contact(cells=Known((cell(agent=None, status=late),)))), Blocked)
        assert isinstance(judge(out_of_contact(cells=Known((cell(agent=None),)))), Safe)

    @pytest.mark.parametrize("on_hub", [{}, {"eval/metrics.json": CONTENT["eval/metrics.json"]}])
    def test_a_phase_that_says_verified_is_nothing_without_the_files(self, on_hub):
        lost = Known(listing("c1", on_hub=on_hub))
        verdict = judge(question(cells=Known((cell(listing=lost),))))
        assert isinstance(verdict, Blocked)
        assert "weights/a.bin" in verdict.blocks[0].missing

    def test_changed_bytes_at_the_same_path_block_and_are_named(self):
        changed = Known(listing("c1", on_hub={**CONTENT, "weights/a.bin": b"B" * 64}))
        verdict = judge(question(cells=Known((cell(listing=changed),))))
        assert isinstance(verdict, Blocked)
        assert verdict.blocks[0].mismatched == ("weights/a.bin",)

    def test_a_newer_output_on_the_pod_is_not_covered_by_the_older_one_on_the_hub(self):
        again = agent_cell("c1", "Produced")
        assert isinstance(judge(question(cells=Known((cell(agent=again),)))), Blocked)

    def test_a_cell_that_landed_after_contact_was_lost_is_fine_by_the_trailer_of_its_commit(self):
        landed = cell(agent=None, status=status("Producing", done=False))
        verdict = judge(out_of_contact(cells=Known((landed,))))
        assert isinstance(verdict, Safe)
        assert verdict.receipt.verified == 1
        unread = cell(agent=None, status=status("Producing", done=False), commits=Known(()))
        assert isinstance(judge(out_of_contact(cells=Known((unread,)))), Undecided)


class TestNothingProduced:
    never: ClassVar = {"ever_contacted": False, "launch_confirmed": False}

    def asked(self, reason=GateReason.MIGRATE, **changes):
        plain = pod_status(attempt={"launchedStart": None})
        fields = {"shell": no_contact(), "status": plain, "cells": Known((unfinished(status=status(), agent=None),))}
        return question(reason, **{**fields, **self.never, **changes})

    @pytest.mark.parametrize("reason", ALL)
    def test_a_pod_that_never_had_contact_is_safe_with_and_without_cells(self, reason):
        assert isinstance(judge(self.asked(reason)), Safe)
        assert isinstance(judge(self.asked(reason, cells=Known(()))), Safe)

    def test_contact_without_a_confirmed_launch_is_safe(self):
        assert isinstance(judge(self.asked(ever_contacted=True)), Safe)

    @pytest.mark.parametrize(
        "changes",
        [
            {"created_by_us": False},
            {"spec": pod_spec(container={"cmd": ["train"]})},
            {"spec": pod_spec(container={"entrypoint": ["train"]})},
            {"ever_contacted": True, "launch_confirmed": True},
            {"ever_contacted": True, "spec": pod_spec(workload={"command": []})},
            {"ever_contacted": True, "status": pod_status(attempt={"launchedStart": None, "intent": "Launch"})},
            {"ever_contacted": True, "status": pod_status()},
            {"cells": Known((cell("c2", status=status("Produced", done=True), listing=NOTHING, agent=None),))},
        ],
    )
    def test_anything_that_could_have_written_a_result_makes_it_unknown(self, changes):
        assert not isinstance(judge(self.asked(**changes)), Safe)

    def test_a_host_volume_with_an_older_life_is_not_nothing(self):
        spec = pod_spec(volume=PERSISTENT, remediation={"hostVolume": "Discard"})
        assert not isinstance(judge(self.asked(spec=spec)), Safe)
        assert isinstance(judge(self.asked(spec=spec, first_start=True)), Safe)
        assert isinstance(judge(self.asked(GateReason.STOP, spec=spec)), Safe)


class TestSurvivingVolume:
    @pytest.mark.parametrize(
        ("volume", "live", "reason", "act", "safe"),
        [
            (NETWORK, {"network_volume_id": "v1"}, GateReason.DELETE, GateAct.DESTROY, True),
            (NETWORK, {"network_volume_id": "v1"}, GateReason.STOP, None, True),
            (NETWORK, {"network_volume_id": "v2"}, GateReason.DELETE, GateAct.DESTROY, False),
            (NETWORK, {}, GateReason.STOP, None, False),
            (PERSISTENT, {"persistent_gb": 20}, GateReason.STOP, None, True),
            (PERSISTENT, {"persistent_gb": 20}, GateReason.RESET, None, True),
            (PERSISTENT, {"persistent_gb": 20}, GateReason.DELETE, None, False),
            (PERSISTENT, {"persistent_gb": 20}, GateReason.DELETE, GateAct.STOP, True),
            (PERSISTENT, {"persistent_gb": 20}, GateReason.EXPIRE, None, False),
            (None, {}, GateReason.STOP, None, False),
        ],
    )
    def test_only_a_volume_that_outlives_the_act_keeps_a_finished_cell(self, volume, live, reason, act, safe):
        spec = pod_spec(**({"volume": volume} if volume else {}))
        asked = question(reason, spec=spec, pod=Known(provider_pod(**live)), cells=Known((finished(),)), act=act)
        assert isinstance(judge(asked), Safe) is safe

    def test_a_path_beside_the_mount_or_out_of_it_does_not_survive(self):
        spec, pod = pod_spec(volume=NETWORK), Known(provider_pod(network_volume_id="v1"))
        for root in ("/workspace2/c", "/workspace/../root/c", "/root/c"):
            there = finished(spec=cell_spec(root=root))
            assert isinstance(judge(question(spec=spec, pod=pod, cells=Known((there,)))), Blocked)


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

    @pytest.mark.parametrize("ssh", [c for c in SshClass if c is not SshClass.OK])
    def test_no_class_of_failed_session_is_taken_for_contact(self, ssh):
        verdict = judge(out_of_contact(cells=Known((finished(agent=None),)), shell=no_contact(ssh)))
        assert isinstance(verdict, Blocked)


class TestHubUnknown:
    @pytest.mark.parametrize("make", [cell, unfinished, finished])
    @pytest.mark.parametrize("ask", [question, out_of_contact])
    def test_a_hub_that_cannot_be_read_permits_nothing(self, ask, make):
        blind = make(listing=Unknown("503"))
        verdict = judge(ask(cells=Known((blind,))))
        assert isinstance(verdict, Undecided)
        assert "503" in verdict.why


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


class TestNoCells:
    @pytest.mark.parametrize(
        ("reason", "spec", "kind"),
        [
            (GateReason.DELETE, pod_spec(), Safe),
            (GateReason.STOP, pod_spec(state="Stopped"), Safe),
            (GateReason.STOP, pod_spec(remediation={"action": "Stop"}), Undecided),
            (GateReason.MIGRATE, pod_spec(), Undecided),
            (GateReason.EXPIRE, pod_spec(), Undecided),
            (GateReason.RESET, pod_spec(), Blocked),
            (GateReason.REPLACE, pod_spec(), Blocked),
        ],
    )
    def test_nothing_automatic_ends_a_pod_without_cells(self, reason, spec, kind):
        verdict = judge(question(reason, spec=spec, cells=Known(())))
        assert isinstance(verdict, kind)
        if not isinstance(verdict, Safe):
            assert verdict.reason is Reason.NO_CELLS_DECLARED

    def test_a_person_overrides_and_the_receipt_says_so(self):
        verdict = judge(question(cells=Known(()), abandoned="scratch only"))
        assert isinstance(verdict, Safe)
        assert "scratch only" in (verdict.receipt.policy or "")


class TestAbandoned:
    @pytest.mark.parametrize("reason", ALL)
    def test_data_that_a_person_gave_up_is_discarded_by_name(self, reason):
        given_up = finished(abandoned="bad seed", listing=Unknown("503"))
        verdict = judge(question(reason, cells=Known((cell(), given_up))))
        assert isinstance(verdict, Safe)
        assert verdict.receipt.discarded == ("c2",)
        assert "bad seed" in (verdict.receipt.policy or "")

    def test_a_deleted_cell_counts_like_any_other(self):
        assert isinstance(judge(question(cells=Known((cell(), finished(deleting=True))))), Blocked)


def test_a_visit_is_not_asked_for_where_none_can_succeed():
    asked = question(
        GateReason.DELETE,
        pod=Known(provider_pod(state=ProviderState.ERROR, raw_state="ERROR")),
        shell=None,
        cells=Known((finished(agent=None),)),
    )
    assert not isinstance(judge(asked), NeedsFacts)
