"""A cell on its way, pass by pass: the agent's word, the Hub's answer, and what is unknown."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gatekit.cells import (
    CONTENT,
    NOW,
    POD,
    STARTED,
    agent_cell,
    empty_listing,
    listing,
    status,
)
from gatekit.lives import LATER, NEXT, TOLD, WHOLE, again, produced, reading, verified
from gatekit.scopes import agent_view, condition, pod_view, run, scope
from gpupod_operator.api.base import dump
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.known import Unknown
from gpupod_operator.core.sweepcell.decide import decide_cell
from gpupod_operator.core.sweepcell.scope import CellNeed


class TestOnTheWay:
    @pytest.mark.parametrize(
        ("state", "phase", "produced_"),
        [
            ("Pending", "Pending", "False"),
            ("Producing", "Producing", "False"),
            ("Produced", "Produced", "True"),
            ("Uploading", "Uploading", "True"),
        ],
    )
    def test_the_phase_follows_the_agent(self, state, phase, produced_):
        plan = run(reading(state))
        assert plan.status.phase == phase
        assert condition(plan, "Produced")[0] == produced_
        assert condition(plan, "Ready") == ("True", "Accepted")
        assert condition(plan, "Reconciling")[0] == "False"
        seen = plan.status.observation
        assert seen is not None
        assert (seen.pod_id, seen.pod_started_at, seen.state) == (POD, STARTED, state)

    def test_an_uploaded_cell_is_verified_by_a_listing_of_the_same_pass(self):
        given = reading("Uploaded")
        assert decide_cell(given).needs == {CellNeed.HUB}
        plan = run(given, WHOLE, TOLD)
        assert plan.status.phase == "Verified"
        assert condition(plan, "Verified") == ("True", "Verified")
        assert condition(plan, "Ready") == ("True", "Verified")
        assert plan.status.commit is not None
        assert plan.status.commit.oid == "head-1"
        assert plan.status.manifest is not None
        assert plan.status.manifest.files == 2
        assert [e.reason for e in plan.events] == [Reason.VERIFIED]

    def test_an_uploaded_cell_that_is_not_all_there_is_partial_and_names_the_files(self):
        plan = run(reading("Uploaded"), listing("c1", on_hub={}), TOLD)
        assert plan.status.phase == "Partial"
        assert plan.status.verification is not None
        assert plan.status.verification.missing == ("eval/metrics.json", "weights/a.bin")

    def test_other_content_on_the_hub_blocks_and_is_never_overwritten(self):
        plan = run(reading("Uploaded"), listing("c1", on_hub={**CONTENT, "weights/a.bin": b"B" * 64}), TOLD)
        assert plan.status.phase == "Blocked"
        assert condition(plan, "Ready") == ("False", "Mismatch")
        assert condition(plan, "Stalled")[0] == "True"

    def test_a_listing_older_than_the_commit_decides_nothing(self):
        plan = run(reading("Uploaded", commit_at=NOW + timedelta(seconds=5)), empty_listing())
        assert plan.status.phase == "Uploading"

    def test_a_cell_that_is_on_the_hub_already_is_adopted_at_first_sight(self):
        plan = run(scope(hub_checked_at=None), WHOLE, TOLD)
        assert plan.status.phase == "Verified"

    def test_an_older_incarnation_on_the_hub_does_not_block_a_cell_before_its_upload(self):
        plan = run(replace(reading("Producing"), hub_checked_at=None), listing("old-uid"))
        assert plan.status.phase == "Producing"

    @pytest.mark.parametrize(
        ("error", "exit_code", "reason"),
        [
            ("PathMissing", 14, Reason.PATH_MISSING),
            ("SymlinkedDirectory", 14, Reason.SYMLINKED_DIRECTORY),
            ("TooManyFiles", 14, Reason.ARTIFACT_REFUSED),
            ("RepoNotFound", 12, Reason.HUB_REPO_NOT_FOUND),
            ("Forbidden", 12, Reason.HUB_FORBIDDEN),
            ("StorageQuota", 13, Reason.QUOTA_EXCEEDED),
            ("CommitQuota", 10, Reason.RATE_LIMITED),
            ("Mismatch", 14, Reason.MISMATCH),
        ],
    )
    def test_a_refusal_of_the_agent_blocks_with_its_word_and_message(self, error, exit_code, reason):
        told = {"done_seen": True, "error_class": error, "error_message": "say why", "error_exit": exit_code}
        plan = run(reading("Blocked", **told))
        assert plan.status.phase == "Blocked"
        assert condition(plan, "Ready") == ("False", reason)
        assert "say why" in (plan.status.message or "")
        assert plan.status.last_error == "say why"
        assert plan.events[0].warning
        free = run(again(plan.status, reading("Uploading")))
        assert free.status.phase == "Uploading"
        assert free.status.last_error is None


class TestNothingTicks:
    @pytest.mark.parametrize("state", ["Pending", "Producing", "Produced", "Uploading", "Blocked"])
    def test_the_same_reading_later_writes_nothing(self, state):
        given = reading(state)
        first = run(given).status
        later = replace(again(first, given), now=NOW + timedelta(seconds=40))
        plan = run(later)
        assert dump(plan.status) == dump(first)
        assert plan.events == ()

    def test_a_later_listing_with_another_head_and_equal_files_writes_nothing(self):
        first = verified()
        later = scope(first, now=NOW + LATER)
        assert decide_cell(later).needs == {CellNeed.HUB}
        plan = run(later, replace(WHOLE, head="head-9", at=NOW + LATER), TOLD)
        assert dump(plan.status) == dump(first)
        assert plan.events == ()

    def test_a_verified_cell_is_left_alone_until_its_resync(self):
        plan = run(scope(verified(), hub_checked_at=NOW))
        assert plan.next_check == NOW + timedelta(hours=6)

    def test_a_restarted_operator_spreads_its_listings_over_the_resync(self):
        first = verified()
        due = {
            decide_cell(scope(first, uid=f"u{i}", hub_checked_at=None)).next_check.replace(minute=0, second=0)
            for i in range(100)
        }
        assert len(due) >= 6

    def test_every_verified_cell_meets_its_own_slot_within_one_resync(self):
        first = verified()
        for i in range(50):
            waiting = scope(first, uid=f"u{i}", hub_checked_at=None)
            plan = decide_cell(waiting)
            asked = plan if plan.needs else decide_cell(replace(waiting, now=plan.next_check))
            assert plan.next_check <= NOW + timedelta(hours=6)
            assert asked.needs == {CellNeed.HUB}


class TestUnknown:
    def test_a_hub_that_cannot_be_read_keeps_what_was_known(self):
        first = verified()
        plan = run(scope(first, now=NOW + LATER), Unknown("503"))
        assert plan.status.phase == "Verified"
        assert condition(plan, "Verified") == ("Unknown", "CellsUnknown")
        assert plan.next_check <= NOW + LATER + timedelta(seconds=30)
        quiet = scope(plan.status, now=NOW + LATER + timedelta(seconds=5), hub_checked_at=NOW + LATER)
        assert dump(run(quiet, Unknown("timeout")).status) == dump(plan.status)

    def test_a_finished_cell_of_a_gone_pod_is_not_called_lost_on_unknown(self):
        plan = run(scope(produced(), pod=pod_view(**NEXT)), Unknown("503"))
        assert plan.status.phase == "Produced"
        assert plan.status.observation == produced().observation

    def test_without_a_reading_the_last_one_stays(self):
        first = run(reading("Producing")).status
        assert run(scope(first)).status == first

    @pytest.mark.parametrize("changes", [{"pod_id": "pod-0"}, {"running": False}])
    def test_a_state_file_of_another_pod_or_a_dead_agent_is_no_reading(self, changes):
        first = run(reading("Producing")).status
        stale = scope(first, agent=agent_view(agent_cell("c1", "Pending"), **changes))
        assert run(stale).status == first


class TestOutOfContact:
    def test_what_the_agent_uploads_alone_is_found_on_the_hub_by_its_trailer(self):
        first = run(reading("Producing")).status
        away = scope(first, pod=pod_view(contact_lost_at=NOW - timedelta(minutes=9)))
        assert decide_cell(away).needs == {CellNeed.HUB}
        plan = run(away, WHOLE, TOLD)
        assert plan.status.phase == "Verified"
        assert run(away, empty_listing()).status.phase == "Producing"
        assert run(away, WHOLE, ()).status.phase == "Producing"

    def test_the_last_word_of_the_agent_before_the_loss_does_not_hold_back_what_it_has_uploaded_since(self):
        first = run(reading("Uploading")).status
        stale = agent_view(agent_cell("c1", "Uploading"), read_at=NOW - timedelta(minutes=10))
        away = scope(first, agent=stale, pod=pod_view(contact_lost_at=NOW - timedelta(minutes=9)))
        assert run(away, WHOLE, TOLD).status.phase == "Verified"

    def test_the_hub_is_asked_once_a_minute_and_not_at_every_pass(self):
        first = run(reading("Producing")).status
        away = scope(first, pod=pod_view(contact_lost_at=NOW), hub_checked_at=NOW - timedelta(seconds=30))
        plan = run(away)
        assert plan.next_check == NOW + timedelta(seconds=30)


def test_no_status_that_is_written_exceeds_the_schemas_lists():
    many = {f"weights/{i:03}.bin": b"%d" % i for i in range(60)} | {"eval/metrics.json": b"{}"}
    plan = run(scope(agent=agent_view(agent_cell("c1", "Uploaded", content=many))), listing("c1", many, on_hub={}), ())
    assert plan.status.verification is not None
    assert len(plan.status.verification.missing or ()) == 20


def test_a_cell_never_read_has_no_observation():
    assert run(scope(status("Pending"))).status.observation is None
