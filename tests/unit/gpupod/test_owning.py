"""Which pod is ours: adoption, stamps beside the recorded pod, a status that is older than the world."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.provider import CreateRequest, Stamp
from gpupod_operator.core.shell import SshClass
from podkit.driver import INSTANCE, TICK, UID, Driver, spec_of

OURS = f"{INSTANCE}/ml/sweep/{UID}"
ADOPT = {"placement": {"candidates": []}, "adopt": {"podId": "pod-1"}}


def rented(d: Driver, owner: str | None, nonce: str = "n0"):
    """A pod that somebody made before."""
    stamp = Stamp(owner or "x/x/x/x", nonce)
    pod = d.cloud.add(CreateRequest("p", "img", "NVIDIA H100 80GB HBM3", 1, "SECURE", (), 50, ("22/tcp",), stamp))
    if owner is None:
        d.cloud.change(pod.id, stamp=None)
    return pod


def ready() -> Driver:
    d = Driver()
    d.run(until=lambda: d.status.phase == "Ready")
    return d


def test_an_adopted_pod_is_recorded_and_nothing_is_created():
    d = Driver(spec_of(**ADOPT))
    rented(d, None)
    d.run(until=lambda: d.status.phase == "Ready")
    assert d.cloud.calls == []
    assert d.status.attempt.cause == "Adopt"


def test_a_paused_object_renders_the_pod_that_it_names():
    d = Driver(spec_of(paused=True, **ADOPT))
    rented(d, None)
    d.run(until=lambda: d.status.endpoint is not None)
    d.run(limit=timedelta(minutes=5))
    assert d.cloud.calls == []
    assert d.status.endpoint.address == "1.2.3.4:10001"


@pytest.mark.parametrize("owner", ["inst/ml/other/uid-other", f"clone/ml/sweep/{UID}"])
def test_a_pod_with_another_stamp_is_never_adopted(owner):
    d = Driver(spec_of(adopt={"podId": "pod-1"}))
    rented(d, owner)
    d.run(limit=timedelta(minutes=10))
    if owner.startswith("inst"):
        assert d.condition("Stalled") == ("True", Reason.ADOPT_FOREIGN)
    assert d.cloud.calls == []


def test_an_id_that_was_never_seen_is_not_found_and_nothing_is_created():
    d = Driver(spec_of(adopt={"podId": "pod-9"}))
    d.run(limit=timedelta(hours=2))
    assert d.cloud.calls == []
    assert d.condition("Stalled") == ("True", Reason.ADOPT_NOT_FOUND)


def test_two_objects_that_name_one_pod_do_not_share_it():
    d = Driver(spec_of(adopt={"podId": "pod-1"}), rivals=("ml/older",))
    rented(d, None)
    d.run(limit=timedelta(minutes=10))
    assert d.pod_id is None
    assert d.condition("Stalled") == ("True", Reason.ADOPT_CONFLICT)


def test_an_adopted_pod_that_is_gone_is_replaced_only_where_the_spec_can():
    d = Driver(spec_of(adopt={"podId": "pod-1"}))
    rented(d, None)
    d.run(until=lambda: d.status.phase == "Ready")
    d.run(limit=timedelta(minutes=1))
    del d.cloud.pods["pod-1"]
    d.run(until=lambda: d.pod_id == "pod-2" and d.status.phase == "Ready")


def test_an_adopted_pod_that_is_gone_and_cannot_be_made_again_stays_ended():
    d = Driver(spec_of(**ADOPT))
    rented(d, None)
    d.run(until=lambda: d.status.phase == "Ready")
    d.run(limit=timedelta(minutes=1))
    del d.cloud.pods["pod-1"]
    d.run(limit=timedelta(hours=1))
    assert d.cloud.calls == []
    assert d.status.phase == "Stopped"
    assert d.status.ended.pod_id == "pod-1"


def test_an_adopted_pod_that_is_wedged_is_not_deleted_without_a_way_to_make_another():
    d = Driver(spec_of(remediation={"artifacts": "Disposable"}, **ADOPT))
    rented(d, None)
    d.run(until=lambda: d.status.phase == "Ready")
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    d.run(limit=timedelta(hours=2))
    assert d.cloud.calls == []
    assert d.condition("Stalled") == ("True", Reason.INVALID_REQUEST)


def test_a_live_pod_with_our_stamp_is_taken_over_by_an_empty_status():
    d = ready()
    d.status = GpuPodStatus()
    d.restart()
    d.run(until=lambda: d.status.phase == "Ready")
    assert d.pod_id == "pod-1"
    assert len(d.cloud.sent("create")) == 1
    assert d.status.attempt.taken_over


def test_a_status_older_than_the_world_takes_over_and_forgets_the_old_endpoint():
    d = ready()
    d.run(limit=timedelta(minutes=1))
    old = d.status
    d.cloud.pods.clear()
    new = rented(d, OURS, "n7")
    d.status = old
    d.restart()
    d.run(until=lambda: d.pod_id == new.id, limit=timedelta(minutes=5))
    assert d.status.endpoint is None or d.status.endpoint.pod_id == new.id
    d.run(until=lambda: d.status.phase == "Ready")
    assert len(d.cloud.sent("create")) == 1
    assert d.cloud.sent("delete") == []


def test_a_second_pod_with_our_stamp_beside_a_live_one_freezes():
    d = ready()
    rented(d, OURS, "n7")
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    d.run(limit=timedelta(hours=2))
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert d.condition("Stalled") == ("True", Reason.DUPLICATE_PODS)
    assert d.condition("Reachable") == ("False", Reason.PORT_LOST)


def test_two_strange_pods_and_no_record_freeze():
    d = Driver()
    rented(d, OURS, "n7")
    rented(d, OURS, "n8")
    d.run(limit=timedelta(hours=1))
    assert d.cloud.calls == []
    assert d.condition("Stalled") == ("True", Reason.DUPLICATE_PODS)


def test_the_stamp_of_another_instance_is_never_taken_over():
    d = Driver()
    rented(d, f"clone/ml/sweep/{UID}", "n7")
    d.run(limit=timedelta(minutes=10))
    assert d.pod_id != "pod-1"
    assert d.cloud.sent("delete") == []


def test_a_ghost_after_the_object_got_another_pod_by_a_migration_is_deleted():
    d = Driver(spec_of(remediation={"artifacts": "Disposable"}))
    d.cloud.script = ["late"]
    d.run(until=lambda: d.status.phase == "Ready")
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-2")
    d.run(until=lambda: d.pod_id == "pod-3" and d.status.phase == "Ready", limit=timedelta(hours=1))
    d.cloud.hidden.clear()
    d.run(limit=timedelta(minutes=2))
    assert set(d.cloud.pods) == {"pod-3"}


def test_taking_over_runs_the_checks_of_price_and_count():
    d = Driver(spec_of(spend={"maxPricePerHour": "2.5"}, remediation={"artifacts": "Disposable"}))
    pod = rented(d, OURS, "n7")
    d.cloud.change(pod.id, cost_per_hour=Decimal(9))
    d.run(until=lambda: pod.id not in d.cloud.pods, limit=timedelta(minutes=5))
    assert d.status.receipt.reason == "Undo"


def test_a_foreign_pod_of_the_same_name_is_never_touched():
    d = Driver()
    other = rented(d, "inst/ml/sweep/another-uid", "n7")
    before = d.cloud.pods[other.id]
    d.run(until=lambda: d.status.phase == "Ready")
    d.deleting = True
    d.run(until=lambda: d.released)
    assert d.cloud.pods == {other.id: before}


def test_drift_is_shown_and_nothing_is_done():
    d = ready()
    assert d.condition("UpToDate")[0] == "True"
    d.edit(container={"image": "other"})
    d.run(limit=timedelta(minutes=10))
    assert d.condition("UpToDate") == ("False", Reason.REPLACE_REQUIRED)
    assert [c.verb for c in d.cloud.calls] == ["create"]
    d.edit(container={"image": "img"}, placement={"capacity_wait": timedelta(hours=1)})
    d.run(limit=timedelta(minutes=1))
    assert d.condition("UpToDate")[0] == "True"


def test_a_taken_over_pod_keeps_its_unknown_drift():
    d = Driver(spec_of(**ADOPT))
    rented(d, None)
    d.run(until=lambda: d.status.phase == "Ready")
    assert d.condition("UpToDate")[0] == "Unknown"
    assert replace(d.cloud.pods["pod-1"]) == d.cloud.pods["pod-1"]


def lists_beside_the_ticks(d: Driver, length: timedelta) -> int:
    before, began = d.cloud.inventory.sequence, d.now
    d.run(limit=length)
    return d.cloud.inventory.sequence - before - int((d.now - began) / TICK)


def test_a_pod_to_adopt_that_is_not_there_is_asked_for_once_and_then_seen_on_the_shared_lists():
    d = Driver(spec_of(adopt={"podId": "nowhere"}))
    d.run(limit=timedelta(minutes=2))
    assert d.condition("Stalled") == ("True", Reason.ADOPT_NOT_FOUND)
    assert lists_beside_the_ticks(d, timedelta(hours=1)) == 0


def test_an_open_create_is_looked_for_on_the_shared_lists():
    d = Driver()
    d.cloud.script = ["late"]
    d.step()
    d.step()
    assert lists_beside_the_ticks(d, d.policy.create_settle - 2 * TICK) == 0
    assert d.condition("Reconciling")[1] == Reason.CREATE_UNKNOWN


@pytest.mark.parametrize("owner", [None, "inst/ml/other/uid-other"])
def test_a_status_that_was_pointed_at_somebody_elses_pod_costs_neither_pod(owner):
    d = ready()
    own = d.pod_id
    other = rented(d, owner).id
    attempt = d.status.attempt
    assert attempt is not None
    d.status = d.status.model_copy(update={"attempt": attempt.model_copy(update={"pod_id": other})})
    d.run(limit=timedelta(minutes=10))
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert (d.pod_id, d.status.phase) == (own, "Ready")
    d.deleting = True
    d.run(until=lambda: d.released, limit=timedelta(minutes=10))
    assert [p.id for p in d.cloud.billed()] == [other]
