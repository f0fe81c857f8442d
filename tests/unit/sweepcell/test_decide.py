"""The life of a cell, pass by pass."""

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
    commit,
    empty_listing,
    listing,
    manifest_bytes,
    status,
)
from gatekit.scopes import agent_view, condition, pod_view, run, scope
from gpupod_operator.api.base import dump
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import SweepCellStatus
from gpupod_operator.core.known import Unknown
from gpupod_operator.core.sweepcell.decide import decide_cell
from gpupod_operator.core.sweepcell.scope import CellNeed, CellScope, Problem

WHOLE = listing("c1")
MANIFEST = manifest_bytes("c1")
TOLD = (commit("c1", MANIFEST),)
NEXT = {"pod_id": "pod-2", "gone_ids": frozenset({POD}), "attempt": "a2", "started_at": NOW}
LATER = timedelta(hours=7)


def reading(state: str, **changes) -> CellScope:
    return scope(agent=agent_view(agent_cell("c1", state, **changes)))


def verified() -> SweepCellStatus:
    return run(reading("Uploaded"), WHOLE, TOLD).status


def produced() -> SweepCellStatus:
    return run(reading("Produced")).status


def lost() -> SweepCellStatus:
    return run(scope(produced(), pod=pod_view(**NEXT)), empty_listing()).status


def again(plan_status: SweepCellStatus, given: CellScope) -> CellScope:
    return replace(given, status=plan_status)


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


class TestAfterThePod:
    def test_verified_stays(self):
        plan = run(scope(verified(), pod=pod_view(**NEXT)))
        assert plan.status.phase == "Verified"

    def test_a_finished_cell_that_is_not_on_the_hub_is_lost_and_named_then_computed_again(self):
        gone = scope(produced(), pod=pod_view(**NEXT))
        plan = run(gone, empty_listing())
        assert plan.status.phase == "Lost"
        assert condition(plan, "Produced") == ("False", "Lost")
        assert [(e.reason, e.warning) for e in plan.events] == [(Reason.LOST, True)]
        assert POD in plan.events[0].message
        following = run(again(plan.status, gone))
        assert following.status.phase == "Pending"
        assert condition(following, "Produced") == ("False", "Lost")
        assert POD in (following.status.message or "")
        assert following.status.observation is None
        assert following.status.manifest is None

    def test_a_lost_cell_stays_lost_until_there_is_a_next_attempt(self):
        ended = pod_view(pod_id=None, gone_ids=frozenset({POD}), ended="Expire")
        plan = run(scope(produced(), pod=ended), empty_listing())
        assert plan.status.phase == "Lost"
        assert run(again(plan.status, scope(pod=ended))).status.phase == "Lost"

    def test_what_landed_before_the_pod_died_is_adopted_and_not_lost(self):
        plan = run(scope(produced(), pod=pod_view(**NEXT)), WHOLE, TOLD)
        assert plan.status.phase == "Verified"

    def test_an_unfinished_cell_returns_to_pending_after_the_hub_was_asked(self):
        first = run(reading("Producing")).status
        gone = scope(first, pod=pod_view(**NEXT))
        assert decide_cell(gone).needs == {CellNeed.HUB}
        plan = run(gone, empty_listing())
        assert plan.status.phase == "Pending"
        assert plan.status.observation is None

    def test_the_reading_of_the_next_pod_waits_until_the_end_of_the_old_one_is_settled(self):
        new = agent_view(agent_cell("c1", "Pending"), pod_id="pod-2", pod_started_at=NOW, attempt="a2")
        gone = scope(produced(), pod=pod_view(**NEXT), agent=new)
        plan = run(gone, empty_listing())
        assert plan.status.phase == "Lost"
        plan = run(again(plan.status, gone))
        assert plan.status.observation is not None
        assert plan.status.observation.pod_id == "pod-2"

    def test_files_on_a_network_volume_stay_produced_for_the_next_agent(self):
        kept = pod_view(**NEXT, volume_paths=("/workspace",), network_volume_path="/workspace")
        plan = run(scope(produced(), pod=kept))
        assert plan.status.phase == "Produced"

    @pytest.mark.parametrize(("volumes", "phase"), [((), "Lost"), (("/workspace",), "Produced")])
    def test_a_stop_takes_the_container_disk_and_leaves_volumes(self, volumes, phase):
        stopped = pod_view(running=False, volume_paths=volumes)
        plan = run(scope(produced(), pod=stopped), empty_listing())
        assert plan.status.phase == phase

    def test_a_start_after_a_stop_nobody_saw_is_noticed_by_its_time(self):
        restarted = pod_view(started_at=NOW)
        plan = run(scope(produced(), pod=restarted), empty_listing())
        assert plan.status.phase == "Lost"
        assert run(again(plan.status, scope(pod=restarted))).status.phase == "Pending"

    def test_a_file_lost_from_the_hub_without_a_source_is_told_and_not_computed_again(self):
        first = verified()
        part = listing("c1", on_hub={"eval/metrics.json": CONTENT["eval/metrics.json"]}, at=NOW + LATER)
        gone = scope(first, pod=pod_view(**NEXT), now=NOW + LATER)
        plan = run(gone, part, TOLD)
        assert plan.status.phase == "Blocked"
        assert condition(plan, "Ready") == ("False", "MissingNoSource")
        new = agent_view(agent_cell("c1", "Pending"), pod_id="pod-2", pod_started_at=NOW)
        after = run(replace(again(plan.status, gone), agent=new, hub_checked_at=NOW + LATER))
        assert condition(after, "Ready") == ("False", "MissingNoSource")
        back = run(replace(again(after.status, gone), now=NOW + 2 * LATER), WHOLE, TOLD)
        assert back.status.phase == "Verified"

    def test_a_file_lost_from_the_hub_is_uploaded_again_while_its_pod_has_it(self):
        part = listing("c1", on_hub={}, at=NOW + LATER)
        settled = agent_view(agent_cell("c1", "Uploaded"))
        plan = run(scope(verified(), now=NOW + LATER, agent=settled), part, TOLD)
        assert plan.status.phase == "Partial"

    def test_a_cell_of_an_ended_pod_names_the_edit(self):
        ended = pod_view(ended="Expire")
        plan = run(scope(run(reading("Pending")).status, pod=ended))
        assert condition(plan, "Ready") == ("False", "PodEnded")
        assert f"gpupod.dev/resume: {POD}" in (plan.status.message or "")
        assert condition(run(scope(verified(), pod=ended)), "Ready")[0] == "True"


class TestBadInput:
    def test_a_pod_that_does_not_exist(self):
        plan = run(scope(pod=pod_view(exists=False, pod_id=None)))
        assert condition(plan, "Ready") == ("False", "PodNotFound")
        assert condition(plan, "Stalled")[0] == "True"
        assert "create it" in (plan.status.message or "")
        assert len(plan.events) == 1
        assert run(scope(plan.status, pod=pod_view(exists=False, pod_id=None))).events == ()

    def test_an_overlapping_destination_blocks_the_younger_until_it_is_free(self):
        plan = run(scope(overlapping="older"))
        assert condition(plan, "Ready") == ("False", "DestinationConflict")
        assert "older" in (plan.status.message or "")
        assert run(scope(plan.status)).status.phase == "Pending"

    def test_a_refused_token_or_repository_blocks_until_the_hub_answers(self):
        problem = Problem(Reason.HUB_FORBIDDEN, "org/results: give the token write access")
        plan = run(scope(hub_problem=problem, listing=Unknown("403"), hub_checked_at=NOW))
        assert condition(plan, "Ready") == ("False", "HubForbidden")
        assert plan.next_check <= NOW + timedelta(minutes=1)
        quiet = run(scope(plan.status, hub_checked_at=NOW))
        assert dump(quiet.status) == dump(plan.status)
        due = scope(plan.status, now=NOW + timedelta(minutes=1), hub_checked_at=NOW)
        assert run(due, Unknown("503")).status.phase == "Blocked"
        assert run(due, empty_listing()).status.phase == "Pending"

    def test_a_missing_secret_is_named_and_the_hub_is_not_asked(self):
        problem = Problem(Reason.SECRET_NOT_FOUND, "create Secret hf")
        plan = run(scope(token_problem=problem, hub_checked_at=None))
        assert condition(plan, "Ready") == ("False", "SecretNotFound")

    def test_an_agent_that_cannot_run_says_what_to_add_to_the_image(self):
        view = agent_view(None, running=False, problem="python is 3.8; add Python 3.10")
        plan = run(scope(agent=view))
        assert condition(plan, "Ready") == ("False", "AgentUnavailable")
        assert "add Python 3.10" in (plan.status.message or "")


class TestFinalizer:
    @pytest.mark.parametrize(
        ("given", "hub", "goes"),
        [
            (scope(produced(), deleting=True), empty_listing(), False),
            (scope(produced(), deleting=True), Unknown("503"), False),
            (scope(verified(), deleting=True), Unknown("503"), False),
            (scope(verified(), deleting=True), WHOLE, True),
            (scope(produced(), deleting=True, abandoned="bad seed"), empty_listing(), True),
            (scope(produced(), deleting=True, pod=pod_view(abandoned="all")), empty_listing(), True),
            (scope(produced(), deleting=True, pod=pod_view(gone_ids=frozenset({POD}))), empty_listing(), True),
            (scope(produced(), deleting=True, pod=pod_view(released_ids=frozenset({POD}))), empty_listing(), True),
            (scope(deleting=True, pod=pod_view(exists=False, pod_id=None)), Unknown("503"), True),
            (scope(deleting=True, pod=pod_view(pod_id=None, never_had_pod=True)), Unknown("503"), True),
            (scope(produced(), deleting=True, pod=pod_view(pod_id=None)), empty_listing(), False),
            (
                scope(produced(), deleting=True, pod=pod_view(pod_id=None, gone_ids=frozenset({POD}))),
                empty_listing(),
                True,
            ),
            (scope(produced(), deleting=True, pod=pod_view(**NEXT)), empty_listing(), False),
            (scope(deleting=True), empty_listing(), False),
            (scope(verified()), WHOLE, False),
        ],
    )
    def test_a_deleted_cell_goes_only_when_nothing_can_be_lost_with_it(self, given, hub, goes):
        plan = run(given, hub, TOLD)
        assert plan.finalizer is not goes
        assert bool(plan.finalizer_why) is goes

    def test_a_deletion_that_waits_says_what_for_and_which_edit_ends_it(self):
        plan = run(scope(produced(), deleting=True), empty_listing())
        assert condition(plan, "Ready") == ("False", "TeardownBlocked")
        assert f'abandon-data: "{POD}: <why>"' in (plan.status.message or "")


def test_no_status_that_is_written_exceeds_the_schemas_lists():
    many = {f"weights/{i:03}.bin": b"%d" % i for i in range(60)} | {"eval/metrics.json": b"{}"}
    plan = run(scope(agent=agent_view(agent_cell("c1", "Uploaded", content=many))), listing("c1", many, on_hub={}), ())
    assert plan.status.verification is not None
    assert len(plan.status.verification.missing or ()) == 20


def test_a_cell_never_read_has_no_observation():
    assert run(scope(status("Pending"))).status.observation is None
