"""Creates whose outcome nobody knows: found by nonce, retired, ghosts, crashes, and lists that lag."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.known import Known
from gpupod_operator.core.provider import AccountIdentity, Failure
from gpupod_operator.core.shell import SshClass
from podkit.driver import Crashed, Driver, spec_of


def test_an_ambiguous_create_is_found_by_its_nonce_and_taken_over():
    d = Driver()
    d.cloud.script = ["lost"]
    d.run(until=lambda: d.status.phase == "Ready")
    assert len(d.cloud.sent("create")) == 1
    assert len(d.cloud.billed()) == 1


def test_an_ambiguous_create_that_made_nothing_retires_its_nonce_after_the_window():
    d = Driver()
    d.cloud.script = [Failure.AMBIGUOUS]
    d.run(until=lambda: d.status.phase == "Ready")
    first, second = d.cloud.sent("create")
    assert second.at - first.at >= d.policy.create_settle
    assert first.request.stamp.nonce != second.request.stamp.nonce
    assert first.request.stamp.nonce in d.status.attempt.retired_nonces


def test_the_window_does_not_close_while_the_account_cannot_be_listed():
    d = Driver()
    d.cloud.script = ["late"]
    d.step()
    d.step()
    d.cloud.listing = "unknown"
    d.run(limit=timedelta(minutes=20))
    assert len(d.cloud.sent("create")) == 1
    assert d.condition("Reconciling")[1] == Reason.CREATE_UNKNOWN
    d.cloud.listing = "ok"
    d.cloud.hidden.clear()
    d.run(until=lambda: d.status.phase == "Ready")
    assert len(d.cloud.sent("create")) == 1


def test_a_ghost_that_appears_late_is_deleted_with_one_call_and_the_pod_stays():
    d = Driver()
    d.cloud.script = ["late"]
    d.run(until=lambda: d.status.phase == "Ready")
    assert d.pod_id == "pod-2"
    d.cloud.hidden.clear()
    d.run(limit=timedelta(minutes=5))
    assert [c.pod_id for c in d.cloud.sent("delete")] == ["pod-1"]
    assert set(d.cloud.pods) == {"pod-2"}
    assert d.status.phase == "Ready"


def test_a_ghost_that_lists_go_on_showing_is_not_deleted_in_a_busy_loop():
    d = Driver()
    d.cloud.script = ["late"]
    d.run(until=lambda: d.status.phase == "Ready")
    d.cloud.hidden.clear()
    d.cloud.zombie = True
    d.run(limit=timedelta(minutes=5))
    assert 1 <= len(d.cloud.sent("delete")) <= 21


def test_a_ghost_that_will_not_go_does_not_keep_the_pod_from_being_looked_after():
    d = Driver(spec_of(remediation={"artifacts": "Disposable"}))
    d.cloud.script = ["late"]
    d.run(until=lambda: d.status.phase == "Ready")
    d.cloud.hidden.clear()
    d.cloud.undeletable = {"pod-1"}
    d.run(limit=timedelta(minutes=2))
    assert d.status.phase == "Ready"
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-2")
    d.run(until=lambda: "pod-2" not in d.cloud.pods, limit=timedelta(hours=1))
    d.run(limit=timedelta(minutes=10))
    assert len(d.cloud.sent("create")) == 2, "nothing new is paid for beside the ghost"
    assert d.condition("Provisioned") == ("False", Reason.GHOST_FOUND)
    d.cloud.undeletable.clear()
    d.run(until=lambda: d.status.phase == "Ready" and set(d.cloud.pods) == {"pod-3"})


def test_of_two_pods_with_the_open_nonce_one_is_kept_and_the_other_is_a_ghost():
    d = Driver()
    d.cloud.script = ["lost"]
    d.step()
    twin = d.cloud.add(d.cloud.sent("create")[0].request)
    d.run(until=lambda: d.status.phase == "Ready" and len(d.cloud.pods) == 1, limit=timedelta(minutes=5))
    assert d.pod_id in d.cloud.pods
    assert {d.pod_id, d.cloud.sent("delete")[0].pod_id} == {"pod-1", twin.id}


@pytest.mark.parametrize("crash", ["intent", "answer"])
def test_a_crash_around_the_create_leaves_exactly_one_pod(crash):
    d = Driver()
    d.crash = crash
    with pytest.raises(Crashed):
        d.run()
    d.run(until=lambda: d.status.phase == "Ready")
    assert len(d.cloud.billed()) == 1
    assert d.pod_id in d.cloud.pods


def test_a_pod_that_answers_404_while_young_is_still_ours():
    d = Driver()

    def hide(pod):
        d.cloud.hidden.add(pod.id)
        return pod

    d.cloud.make = hide
    d.run(limit=timedelta(seconds=30))
    assert d.pod_id == "pod-1"
    assert d.status.phase == "Provisioning"
    d.cloud.hidden.clear()
    d.run(until=lambda: d.status.phase == "Ready")
    assert len(d.cloud.sent("create")) == 1


def test_a_list_that_lags_behind_a_create_creates_no_second_pod():
    d = Driver()

    def unlist(pod):
        d.cloud.unlisted.add(pod.id)
        return pod

    d.cloud.make = unlist
    d.run(limit=timedelta(minutes=10))
    assert len(d.cloud.sent("create")) == 1
    assert d.status.phase == "Ready"


def test_the_account_is_frozen_while_the_outcome_of_a_create_is_open_under_another_one():
    d = Driver()
    d.cloud.script = ["late"]
    d.step()
    d.account = Known(AccountIdentity("other", "fp2", True))
    d.run(limit=timedelta(minutes=10))
    assert len(d.cloud.sent("create")) == 1
    assert d.condition("Stalled") == ("True", Reason.ACCOUNT_MISMATCH)


def test_the_nonce_of_an_open_create_outlives_any_number_of_pods_that_were_answered_for():
    d = Driver(spec_of(spend={"maxPricePerHour": "2.5"}))
    d.cloud.script = ["late"]
    d.cloud.make = lambda p: replace(p, cost_per_hour=Decimal(9))
    d.run(limit=timedelta(hours=3))
    assert len(d.status.history) > 12
    d.cloud.hidden.clear()
    d.run(limit=timedelta(minutes=3))
    assert "pod-1" in [c.pod_id for c in d.cloud.sent("delete")]
