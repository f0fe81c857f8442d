"""Rows of the gate's table that make a cell fine: verified, nothing produced, a surviving volume, given up."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

import pytest

from gatekit.cells import (
    CONTENT,
    NOW,
    agent_cell,
    cell_spec,
    listing,
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
from gatekit.rows import ALL, NETWORK, NOTHING, PERSISTENT, finished, unfinished
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import Blocked, GateAct, GateReason, Safe, Undecided, judge
from gpupod_operator.core.known import Known, Unknown


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
