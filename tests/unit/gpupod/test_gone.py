"""Gone is proven; pods that end by themselves; what is unknown or another account's concludes nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.known import Known
from gpupod_operator.core.provider import AccountIdentity, ProviderState
from podkit.driver import Driver, spec_of


def ready(**changes) -> Driver:
    d = Driver(spec_of(**changes))
    d.run(until=lambda: d.status.phase == "Ready")
    d.run(limit=timedelta(minutes=2))
    return d


def test_missing_counts_as_live_until_a_404_and_two_lists_agree():
    d = ready()
    d.cloud.unlisted.add("pod-1")
    d.run(limit=timedelta(minutes=5))
    assert d.status.phase == "Ready"
    assert len(d.cloud.sent("create")) == 1
    d.cloud.unlisted.clear()
    d.run(limit=timedelta(minutes=1))
    del d.cloud.pods["pod-1"]
    d.cloud.tick()
    d.settle()
    assert d.pod_id == "pod-1"
    assert d.condition("Provisioned") == ("Unknown", Reason.CONFIRMING_GONE)
    d.run(until=lambda: d.pod_id == "pod-2")
    assert d.status.migration.count_in_window == 1
    assert d.status.history[-1].reason == "TerminatedOutside"


def test_without_a_verified_account_the_proof_takes_twice_the_lists():
    d = Driver()
    d.account = Known(AccountIdentity("fp", "fp", verified=False))
    d.run(until=lambda: d.status.phase == "Ready")
    del d.cloud.pods["pod-1"]
    for _ in range(3):
        d.cloud.now += timedelta(seconds=15)
        d.cloud.tick()
        d.settle()
        assert d.pod_id == "pod-1"
    d.run(until=lambda: d.pod_id == "pod-2")


@pytest.mark.parametrize("get", ["unknown", "404"])
def test_a_list_that_shows_the_pod_outweighs_a_get_that_does_not(get):
    d = ready()
    d.cloud.get = get
    d.run(limit=timedelta(minutes=20))
    assert d.cloud.sent("create")[1:] == []
    assert d.pod_id == "pod-1"


def test_a_pod_listed_as_terminated_is_gone_only_when_lists_and_get_agree():
    d = ready()
    d.cloud.change("pod-1", state=ProviderState.TERMINATED, raw_state="TERMINATED")
    d.run(limit=timedelta(minutes=5))
    assert d.pod_id == "pod-1"
    assert len(d.cloud.sent("create")) == 1
    del d.cloud.pods["pod-1"]
    d.run(until=lambda: d.pod_id == "pod-2")


def test_terminated_outside_without_migrate_stays_ended_until_resume():
    d = ready(remediation={"action": "Report"})
    del d.cloud.pods["pod-1"]
    d.run(limit=timedelta(hours=1))
    assert len(d.cloud.sent("create")) == 1
    assert d.status.ended.act == "Outside"
    assert d.status.phase == "Stopped"
    assert "gpupod.dev/resume: pod-1" in d.status.message
    d.annotations["gpupod.dev/resume"] = "pod-1"
    d.run(until=lambda: d.pod_id == "pod-2" and d.status.phase == "Ready")


def test_terminated_outside_beyond_the_budget_stays_ended():
    d = ready(remediation={"maxMigrations": 1})
    del d.cloud.pods["pod-1"]
    d.run(until=lambda: d.pod_id == "pod-2" and d.status.phase == "Ready")
    del d.cloud.pods["pod-2"]
    d.run(limit=timedelta(hours=1))
    assert len(d.cloud.sent("create")) == 2
    assert d.status.ended.pod_id == "pod-2"


def test_terminated_outside_with_allow_paid_false_creates_nothing():
    d = ready()
    d.edit(spend={"allow_paid": False})
    del d.cloud.pods["pod-1"]
    d.run(limit=timedelta(hours=1))
    assert len(d.cloud.sent("create")) == 1
    assert d.status.phase == "Deferred"


def test_an_error_is_confirmed_and_then_moved_off():
    d = ready(remediation={"artifacts": "Disposable"})
    d.cloud.change("pod-1", state=ProviderState.ERROR, raw_state="ERROR", mappings=())
    d.cloud.tick()
    d.settle()
    assert d.status.phase != "Ready"
    assert d.status.episode.kind == Reason.HOST_FAULT
    d.run(until=lambda: d.pod_id == "pod-2" and d.status.phase == "Ready", limit=timedelta(hours=1))


def test_a_zero_gpu_start_is_stopped_at_once_and_moved_off():
    d = ready(remediation={"artifacts": "Disposable"})
    d.edit(state="Stopped")
    d.run(until=lambda: d.status.phase == "Stopped")
    d.cloud.restart = lambda p: replace(p, gpu_count=0)
    d.edit(state="Running")
    d.run(until=lambda: len(d.cloud.sent("stop")) == 2, limit=timedelta(minutes=2))
    d.run(until=lambda: d.pod_id != "pod-1" and d.status.phase == "Ready", limit=timedelta(minutes=3))
    assert "pod-1" not in d.cloud.pods


@pytest.mark.parametrize("listing", ["unknown", "suspect"])
@pytest.mark.parametrize("state", ["Running", "Stopped"])
def test_an_unknown_inventory_keeps_the_row_and_acts_on_nothing(listing, state):
    d = ready(remediation={"artifacts": "Disposable"})
    d.cloud.listing = listing
    d.cloud.get = "404"
    d.cloud.tick()
    d.edit(state=state)
    row = d.status.endpoint
    d.run(limit=timedelta(hours=2))
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert d.status.endpoint == row
    assert d.condition("ProviderObserved")[0] == "False"
    assert d.condition("Ready")[0] == "True"


def test_a_key_of_another_account_freezes_and_concludes_nothing():
    d = ready(remediation={"artifacts": "Disposable"})
    row, price = d.status.endpoint, d.status.cost.per_hour
    d.account = Known(AccountIdentity("other", "fp2", verified=True))
    d.cloud.hidden.add("pod-1")
    d.run(limit=timedelta(hours=1))
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert d.condition("Stalled") == ("True", Reason.ACCOUNT_MISMATCH)
    assert (d.status.endpoint, d.status.cost.per_hour) == (row, price)
    assert d.condition("Reachable") != ("False", Reason.NO_POD)
    d.account = Known(AccountIdentity("acc", "fp", verified=True))
    d.cloud.hidden.clear()
    d.run(until=lambda: d.status.phase == "Ready")
