"""What the end of a pod, bad input and a deletion mean for a cell."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gatekit.cells import (
    CONTENT,
    NOW,
    POD,
    agent_cell,
    empty_listing,
    listing,
)
from gatekit.lives import LATER, NEXT, TOLD, WHOLE, again, produced, reading, verified
from gatekit.scopes import agent_view, condition, pod_view, run, scope
from gpupod_operator.api.base import dump
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.known import Unknown
from gpupod_operator.core.sweepcell.decide import decide_cell
from gpupod_operator.core.sweepcell.scope import CellNeed, Problem


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
