"""States Stopped and Running, stops and starts by others, and ends that stay ended until a person lifts them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.provider import Failure, ProviderState
from gpupod_operator.core.shell import SshClass
from podkit.driver import Crashed, Driver, spec_of


def ready(**changes) -> Driver:
    d = Driver(spec_of(**changes))
    d.run(until=lambda: d.status.phase == "Ready")
    d.run(limit=timedelta(minutes=2))
    return d


def test_a_pod_stopped_outside_is_neither_started_nor_replaced_until_resume():
    d = ready()
    d.cloud.exit("pod-1")
    d.run(limit=timedelta(hours=1))
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert d.condition("Provisioned") == ("False", Reason.STOPPED_OUTSIDE)
    assert d.status.endpoint is None
    d.annotations["gpupod.dev/resume"] = "pod-1"
    d.run(until=lambda: d.status.phase == "Ready")
    assert len(d.cloud.sent("start")) == 1


def test_one_resume_starts_the_pod_once():
    d = ready()
    d.cloud.exit("pod-1")
    d.annotations["gpupod.dev/resume"] = "pod-1"
    d.run(until=lambda: d.cloud.sent("start") != [] and d.status.phase == "Ready")
    d.cloud.exit("pod-1")
    d.run(limit=timedelta(hours=1))
    assert len(d.cloud.sent("start")) == 1
    assert d.condition("Provisioned") == ("False", Reason.STOPPED_OUTSIDE)
    del d.annotations["gpupod.dev/resume"]
    d.run(limit=timedelta(minutes=1))
    d.annotations["gpupod.dev/resume"] = "pod-1"
    d.run(until=lambda: d.status.phase == "Ready")


def test_a_pod_stopped_outside_is_started_by_stopped_and_then_running():
    d = ready()
    d.cloud.exit("pod-1")
    d.run(limit=timedelta(minutes=1))
    d.edit(state="Stopped")
    d.run(limit=timedelta(minutes=1))
    assert d.status.phase == "Stopped"
    d.edit(state="Running")
    d.run(until=lambda: d.status.phase == "Ready")
    assert len(d.cloud.sent("start")) == 1


def test_state_stopped_stops_with_a_receipt_and_running_starts_the_same_pod():
    d = ready()
    d.edit(state="Stopped")
    d.run(until=lambda: d.status.phase == "Stopped")
    assert d.status.receipt.reason == "Stop"
    assert d.status.ended.act == "Stop"
    assert d.condition("Provisioned")[1] == Reason.STOPPED_BY_ORDER
    d.run(limit=timedelta(hours=1))
    d.edit(state="Running")
    d.run(until=lambda: d.status.phase == "Ready")
    assert [c.verb for c in d.cloud.calls] == ["create", "stop", "start"]
    assert d.pod_id == "pod-1"
    assert d.status.ended is None


@pytest.mark.parametrize("crash", ["intent", "answer"])
@pytest.mark.parametrize("act", ["stop", "start"])
def test_a_crash_around_stop_and_start_is_made_good(act, crash):
    d = ready()
    d.edit(state="Stopped")
    if act == "start":
        d.run(until=lambda: d.status.phase == "Stopped")
        d.edit(state="Running")
    d.crash = crash
    with pytest.raises(Crashed):
        d.run()
    d.run(until=lambda: d.status.phase == ("Stopped" if act == "stop" else "Ready"))
    assert len(d.cloud.sent("create")) == 1


def test_running_again_before_the_stop_was_seen_starts_the_pod():
    d = ready()
    d.edit(state="Stopped")
    d.step()
    d.edit(state="Running")
    d.run(until=lambda: d.status.phase == "Ready" and d.cloud.sent("start") != [])
    assert d.status.ended is None


def test_a_start_with_allow_paid_false_is_not_made_and_comes_when_it_is_true():
    d = ready()
    d.edit(state="Stopped")
    d.run(until=lambda: d.status.phase == "Stopped")
    d.edit(state="Running", spend={"allow_paid": False})
    d.run(limit=timedelta(minutes=30))
    assert d.cloud.sent("start") == []
    d.edit(spend={"allow_paid": True})
    d.run(until=lambda: d.status.phase == "Ready")
    assert d.pod_id == "pod-1"


def test_a_start_is_not_made_when_the_money_is_used_up_and_comes_when_there_is_more():
    d = ready()
    d.edit(state="Stopped")
    d.run(until=lambda: d.status.phase == "Stopped")
    d.edit(state="Running", spend={"max_total": Decimal("0.0001")})
    d.run(limit=timedelta(minutes=30))
    assert d.cloud.sent("start") == []
    assert d.condition("Stalled") == ("True", Reason.TOTAL_EXHAUSTED)
    d.edit(spend={"max_total": Decimal(100)})
    d.run(until=lambda: d.status.phase == "Ready")


def test_a_limit_that_the_gate_holds_does_not_blind_us_to_the_pod():
    d = ready(spend={"ttl": "1h"}, workload={"command": ["run"]})
    d.run(limit=timedelta(hours=2))
    assert d.condition("SpendAllowed") == ("False", Reason.TTL_EXPIRED)
    assert d.cloud.sent("stop") == []
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    d.run(limit=timedelta(minutes=10))
    assert d.condition("Reachable") == ("False", Reason.PORT_LOST)


def test_a_full_host_refuses_the_start_and_is_asked_again_with_backoff():
    d = ready()
    d.edit(state="Stopped")
    d.run(until=lambda: d.status.phase == "Stopped")
    d.cloud.start_script = [Failure.HOST_FULL] * 3
    d.edit(state="Running")
    d.run(limit=timedelta(seconds=20))
    assert d.condition("Reconciling")[1] == Reason.START_REFUSED
    d.run(until=lambda: d.status.phase == "Ready", limit=timedelta(minutes=20))
    starts = [c.at for c in d.cloud.sent("start")]
    assert len(starts) == 4
    assert min(b - a for a, b in pairwise(starts)) >= timedelta(seconds=30)


def test_a_person_may_move_a_pod_whose_host_is_full():
    d = ready(remediation={"artifacts": "Disposable"})
    d.edit(state="Stopped")
    d.run(until=lambda: d.status.phase == "Stopped")
    d.cloud.start_script = [Failure.HOST_FULL] * 100
    d.edit(state="Running")
    d.run(limit=timedelta(minutes=5))
    d.annotations["gpupod.dev/migrate"] = "pod-1"
    d.run(until=lambda: d.pod_id == "pod-2" and d.status.phase == "Ready")


def test_a_pod_started_outside_after_its_end_is_followed_as_running():
    d = ready(remediation={"artifacts": "Disposable", "action": "Stop"})
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    d.run(until=lambda: d.status.phase == "Stopped", limit=timedelta(hours=1))
    d.host().ssh = SshClass.OK
    d.cloud.run("pod-1")
    d.run(limit=timedelta(minutes=2))
    assert d.status.phase == "Ready"
    assert d.status.ended is None
    assert len(d.cloud.sent("stop")) == 1


def test_a_pod_that_vanishes_while_stopped_by_order_stays_ended():
    d = ready()
    d.edit(state="Stopped")
    d.run(until=lambda: d.status.phase == "Stopped")
    del d.cloud.pods["pod-1"]
    d.run(limit=timedelta(minutes=10))
    assert d.status.phase == "Stopped"
    assert len(d.cloud.sent("create")) == 1


def test_a_stop_that_was_lost_is_repeated_under_its_own_reason():
    d = ready(remediation={"artifacts": "Disposable", "action": "Stop", "approval": "Manual"})
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    d.run(limit=timedelta(minutes=14))
    d.crash = "intent"
    with pytest.raises(Crashed):
        d.run(limit=timedelta(minutes=5))
    assert d.cloud.sent("stop") == []
    d.run(until=lambda: d.status.phase == "Stopped", limit=timedelta(minutes=5))
    assert d.status.receipt.reason == "Stop"


def test_a_pod_stopped_outside_is_moved_when_a_person_asks():
    d = ready(remediation={"artifacts": "Disposable"})
    d.cloud.exit("pod-1")
    d.run(limit=timedelta(minutes=2))
    d.annotations["gpupod.dev/migrate"] = "pod-1"
    d.run(until=lambda: d.pod_id == "pod-2" and d.status.phase == "Ready")
    assert "pod-1" not in d.cloud.pods


@pytest.mark.parametrize(("policy", "left"), [("Terminate", []), ("Stop", ["pod-1"])])
def test_an_error_pod_that_is_wanted_stopped_is_ended_by_the_deletion_policy(policy, left):
    d = ready(deletionPolicy=policy)
    d.cloud.change("pod-1", state=ProviderState.ERROR, raw_state="ERROR", mappings=())
    d.edit(state="Stopped")
    d.run(limit=timedelta(minutes=10))
    assert list(d.cloud.pods) == left
    assert len(d.cloud.sent("create")) == 1
    if not left:
        assert d.status.receipt.reason == "Stop"
        assert d.status.phase == "Stopped"


def test_a_stopped_pod_stays_shown_as_stopped_while_the_account_cannot_be_read():
    d = Driver(spec_of(remediation={"artifacts": "Disposable"}))
    d.run(until=lambda: d.status.phase == "Ready")
    d.edit(state="Stopped")
    d.run(until=lambda: d.status.phase == "Stopped", limit=timedelta(minutes=10))
    d.cloud.listing = d.cloud.get = "unknown"
    d.run(limit=timedelta(minutes=10))
    assert d.status.phase == "Stopped"
