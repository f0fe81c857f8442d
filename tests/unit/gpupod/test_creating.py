"""Creates: the walk over candidates, what must hold before a POST, and creates whose outcome nobody knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.scope import SecretsReport
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.provider import Failure
from podkit.driver import Driver, spec_of

TWO = {"candidates": [{"gpuType": "H100"}, {"gpuType": "A100"}]}


def asked(d: Driver) -> list[str]:
    return [c.request.gpu_type_id.split()[1][:4] for c in d.cloud.sent("create")]


def test_the_first_candidate_is_rented_and_recorded():
    d = Driver()
    d.run(until=lambda: d.status.phase == "Ready")
    assert d.status.attempt.pod_id == "pod-1"
    assert d.status.attempt.intent == "None"
    assert len(d.cloud.sent("create")) == 1


def test_candidates_are_walked_in_order_and_each_refusal_moves_on():
    d = Driver(spec_of(placement=TWO))
    d.cloud.script = [Failure.NO_CAPACITY]
    d.run(until=lambda: d.status.phase == "Ready")
    assert asked(d) == ["H100", "A100"]


def test_after_the_backoff_every_candidate_is_asked_again():
    d = Driver(spec_of(placement=TWO))
    d.cloud.script = [Failure.NO_CAPACITY] * 3
    d.run(until=lambda: d.status.phase == "Ready")
    assert asked(d) == ["H100", "A100", "H100", "A100"]


def test_rounds_without_capacity_are_spaced_out_up_to_ten_minutes():
    d = Driver(spec_of(placement=TWO))
    d.cloud.script = [Failure.NO_CAPACITY] * 400
    d.run(limit=timedelta(hours=2))
    assert d.status.phase == "WaitingForCapacity"
    rounds = [c.at for c in d.cloud.sent("create") if "H100" in c.request.gpu_type_id]
    gaps = [b - a for a, b in pairwise(rounds)]
    assert min(gaps) >= timedelta(seconds=22)
    assert gaps[-1] >= timedelta(minutes=7)
    assert len(rounds) < 25


def test_capacity_wait_ends_and_an_edit_begins_it_anew():
    d = Driver(spec_of(placement={"capacityWait": "1h"}))
    d.cloud.script = [Failure.NO_CAPACITY] * 400
    d.run(limit=timedelta(minutes=80))
    assert d.condition("Stalled") == ("True", Reason.CAPACITY_WAIT_EXHAUSTED)
    before = len(d.cloud.sent("create"))
    d.run(limit=timedelta(minutes=30))
    assert len(d.cloud.sent("create")) == before
    d.cloud.script = []
    d.edit(placement={"candidates": [{"gpuType": "A100"}]})
    d.run(until=lambda: d.status.phase == "Ready")


def test_reconcile_at_begins_the_wait_for_capacity_anew():
    d = Driver(spec_of(placement={"capacityWait": "1h"}))
    d.cloud.script = [Failure.NO_CAPACITY] * 400
    d.run(limit=timedelta(minutes=80))
    d.cloud.script = []
    d.annotations["gpupod.dev/reconcile-at"] = d.now.isoformat()
    d.run(until=lambda: d.status.phase == "Ready")


def test_a_typo_in_a_later_candidate_is_found_before_any_post():
    d = Driver(spec_of(placement={"candidates": [{"gpuType": "H100"}, {"gpuType": "H1OO"}]}))
    d.run()
    assert d.cloud.calls == []
    assert d.condition("Stalled") == ("True", Reason.UNKNOWN_GPU_TYPE)
    assert "H100" in d.status.message


def test_allow_paid_false_makes_no_create_at_all():
    d = Driver(spec_of(spend={"allowPaid": False}))
    d.run(limit=timedelta(hours=1))
    assert d.cloud.calls == []
    assert d.status.phase == "Deferred"
    assert d.condition("Provisioned") == ("False", Reason.NO_COMPUTE_AVAILABLE)


@pytest.mark.parametrize("where", ["spend", "candidate"])
def test_a_list_price_over_the_cap_is_never_asked_for(where):
    spec = (
        spec_of(spend={"maxPricePerHour": "1.5"})
        if where == "spend"
        else spec_of(placement={"candidates": [{"gpuType": "H100", "maxPricePerHour": "1.5"}]})
    )
    d = Driver(spec)
    d.run()
    assert d.cloud.calls == []
    assert d.condition("Stalled") == ("True", Reason.PRICE_OVER_CAP)


def test_an_answer_over_the_cap_is_undone_with_a_receipt_and_the_next_candidate_asked():
    d = Driver(spec_of(placement=TWO, spend={"maxPricePerHour": "2.5"}))
    d.cloud.make = lambda p: replace(p, cost_per_hour=Decimal(9)) if "H100" in p.gpu_type_id else p
    d.run(until=lambda: d.status.phase == "Ready")
    assert asked(d) == ["H100", "A100"]
    assert [c.pod_id for c in d.cloud.sent("delete")] == ["pod-1"]
    assert d.status.receipt.reason == "Undo"
    assert len(d.cloud.billed()) == 1


@pytest.mark.parametrize("change", [{"cost_per_hour": Decimal(9)}, {"gpu_count": 2}, {"gpu_count": 0}])
def test_a_vendor_that_never_gives_what_was_asked_is_not_rented_from_in_a_loop(change):
    d = Driver(spec_of(spend={"maxPricePerHour": "2.5"}))
    d.cloud.make = lambda p: replace(p, **change)
    d.run(limit=timedelta(hours=3))
    assert len(d.cloud.sent("create")) < 30
    assert len(d.cloud.billed()) <= 1


def test_a_cap_lowered_later_does_not_end_a_pod_that_was_in_use():
    d = Driver(spec_of(spend={"maxPricePerHour": "5"}))
    d.run(until=lambda: d.status.phase == "Ready")
    d.edit(spend={"max_price_per_hour": Decimal(1)})
    d.run(limit=timedelta(minutes=10))
    assert d.cloud.sent("delete") == []


def test_the_same_refusal_of_every_candidate_stops_until_the_spec_changes():
    d = Driver(spec_of(placement=TWO))
    d.cloud.script = [Failure.INVALID] * 20
    d.run(limit=timedelta(hours=2))
    assert len(d.cloud.sent("create")) == 2
    assert d.condition("Stalled") == ("True", Reason.INVALID_REQUEST)
    d.cloud.script = []
    d.edit(container={"image": "better"})
    d.run(until=lambda: d.status.phase == "Ready")


def test_no_balance_waits_and_does_not_walk_on():
    d = Driver(spec_of(placement=TWO))
    d.cloud.script = [Failure.INSUFFICIENT_BALANCE] * 100
    d.run(limit=timedelta(minutes=20))
    assert asked(d)[0:2] != ["H100", "A100"]
    assert d.condition("Reconciling")[1] == Reason.INSUFFICIENT_BALANCE
    assert len(d.cloud.sent("create")) < 10


@pytest.mark.parametrize("failure", [Failure.THROTTLED, Failure.UNAVAILABLE, Failure.API_GONE, Failure.UNAUTHORIZED])
def test_a_create_refused_before_processing_is_repeated_for_the_same_candidate(failure):
    d = Driver(spec_of(placement=TWO))
    d.cloud.script = [failure]
    d.run(until=lambda: d.status.phase == "Ready")
    assert asked(d) == ["H100", "H100"]
    first, second = d.cloud.sent("create")
    assert second.at - first.at >= timedelta(seconds=15)


@pytest.mark.parametrize("listing", ["unknown", "suspect"])
def test_nothing_is_created_without_a_complete_list(listing):
    d = Driver()
    d.cloud.tick()
    d.cloud.listing = listing
    d.run(limit=timedelta(minutes=10))
    assert d.cloud.calls == []
    d.cloud.listing = "ok"
    d.run(until=lambda: d.status.phase == "Ready")


def test_a_missing_secret_is_named_and_nothing_is_created():
    d = Driver()
    d.secrets = Known(SecretsReport(problem="Secret hf is missing", reason=Reason.SECRET_NOT_FOUND))
    d.run()
    assert d.cloud.calls == []
    assert d.condition("Stalled") == ("True", Reason.SECRET_NOT_FOUND)


def test_a_missing_api_key_is_a_condition_from_the_first_pass_on():
    d = Driver(account=Unknown("Secret runpod is missing"))
    d.secrets = Known(SecretsReport(problem="Secret runpod is missing", reason=Reason.SECRET_NOT_FOUND))
    d.run()
    assert d.cloud.calls == []
    assert d.condition("ProviderObserved")[0] == "False"


def test_an_unknown_network_volume_is_named_before_any_post():
    d = Driver(spec_of(volume={"network": {"volumeId": "v1"}}))
    d.run()
    assert d.cloud.calls == []
    assert d.condition("Stalled") == ("True", Reason.VOLUME_NOT_FOUND)
