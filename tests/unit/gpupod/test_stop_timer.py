"""The stop timer on the pod: when it is ordered, when it can be relied on, and what follows once it has struck."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.plan import InstallAgent
from podkit.driver import Driver, spec_of
from podkit.hosts import Host

DISPOSABLE: dict[str, Any] = {"remediation": {"artifacts": "Disposable"}}
GRACE = timedelta(minutes=10)


def timed(cells: int = 0, **changes: Any) -> Driver:
    d = Driver(spec_of(**{"spend": {"ttl": "1h"}, **changes}))
    d.run(until=lambda: d.pod_id is not None)
    for number in range(cells):
        d.declare(f"c{number}", done=False)
    d.host().agent_running = False
    d.run(limit=timedelta(minutes=5))
    return d


def orders(d: Driver) -> list[Any]:
    """The agent's timers, as written."""
    return [json.loads(p.action.cells).get("timer") for p in d.plans if isinstance(p.action, InstallAgent)]


def installs(host: Host) -> int:
    return host.acts.count("install")


def test_a_pod_with_a_ttl_is_given_a_deadline_after_the_operators_own_and_says_that_it_holds_it():
    d = timed(cells=1)
    attempt = d.status.attempt
    assert attempt is not None and attempt.created_at is not None and attempt.timer is not None
    due = attempt.created_at + timedelta(hours=1) + GRACE
    assert attempt.timer.armed
    assert attempt.timer.deadline == due.replace(microsecond=0)
    assert [t["deadline"] for t in orders(d)] == [f"{due:%Y-%m-%dT%H:%M:%SZ}"]
    assert installs(d.host()) == 1


@pytest.mark.parametrize(
    ("cells", "changes"),
    [
        (1, {"spend": {}}),
        (1, {"keepRunning": True}),
        (1, {"remediation": {"approval": "Manual"}}),
        (0, {}),
    ],
    ids=["no ttl", "shielded", "a person approves", "nothing is known of its data"],
)
def test_no_timer_where_no_end_would_be_let_through_without_a_person(cells: int, changes: dict[str, Any]) -> None:
    d = timed(cells=cells, **changes)
    assert [t for t in orders(d) if t] == []
    assert d.status.attempt is not None
    assert d.status.attempt.timer is None


def test_a_pod_without_cells_whose_data_is_disposable_gets_the_agent_for_its_timer():
    d = timed(**DISPOSABLE)
    (order,) = orders(d)
    assert (order["disposable"], order["keeps"], order["unjudged"]) == (True, [], [])


def test_a_shield_that_is_put_up_takes_the_timer_back_and_a_longer_life_moves_it():
    d = timed(cells=1)
    d.edit(keep_running=True)
    d.run(limit=timedelta(minutes=5))
    assert orders(d)[-1] is None
    assert d.status.attempt is not None
    assert d.status.attempt.timer is None
    d.edit(keep_running=False, spend={"ttl": timedelta(hours=2)})
    d.run(limit=timedelta(minutes=5))
    created = d.status.attempt.created_at
    assert created is not None
    assert orders(d)[-1]["deadline"] == f"{created + timedelta(hours=2) + GRACE:%Y-%m-%dT%H:%M:%SZ}"
    assert installs(d.host()) == 3


def test_a_living_operator_ends_the_pod_before_its_timer():
    d = timed(**DISPOSABLE)
    d.run(limit=timedelta(hours=1))
    assert len(d.cloud.sent("stop")) == 1
    assert d.status.ended is not None
    assert d.status.ended.reason is not None
    assert "timer" not in d.status.ended.reason


def away_until_the_timer_struck(d: Driver) -> None:
    d.cloud.now += timedelta(hours=1) + GRACE + timedelta(minutes=1)
    d.cloud.exit("pod-1")
    d.restart()
    d.cloud.tick()
    d.cloud.tick()


def test_a_pod_that_its_timer_stopped_is_ended_by_its_ttl_and_stays_so_until_resumed():
    d = timed(cells=1)
    away_until_the_timer_struck(d)
    d.run(limit=timedelta(hours=1))
    assert d.status.phase == "Stopped"
    assert d.status.ended is not None
    assert d.status.ended.reason == "spend.ttl is over; the timer on the pod stopped it"
    assert [c.verb for c in d.cloud.calls] == ["create"]
    d.edit(spend={"ttl": timedelta(hours=9)})
    d.annotations["gpupod.dev/resume"] = "pod-1"
    d.run(until=lambda: d.status.phase == "Ready", limit=timedelta(minutes=10))
    assert len(d.cloud.sent("start")) == 1


def test_where_the_limit_deletes_the_stopped_pod_is_deleted_once_an_operator_is_back():
    d = timed(**DISPOSABLE, spend={"ttl": "1h", "onLimit": "Terminate"})
    away_until_the_timer_struck(d)
    d.run(until=lambda: d.cloud.billed() == [], limit=timedelta(minutes=10))
    assert [c.verb for c in d.cloud.calls] == ["create", "delete"]
    d.run(limit=timedelta(hours=1))
    assert [c.verb for c in d.cloud.calls] == ["create", "delete"]


def test_a_stop_before_the_deadline_was_somebody_elses():
    d = timed(cells=1)
    d.cloud.exit("pod-1")
    d.run(limit=timedelta(minutes=5))
    assert d.condition("Provisioned") == ("False", Reason.STOPPED_OUTSIDE)
    assert d.status.ended is None


def worst(d: Driver) -> Decimal | None:
    return d.status.cost.max_burn if d.status.cost is not None else None


def test_the_worst_case_of_a_pod_that_stops_itself_is_its_price_until_then_and_does_not_tick():
    d = timed(**DISPOSABLE)
    first, price = worst(d), d.pod.cost_per_hour
    assert first is not None and price is not None
    hours = Decimal((timedelta(hours=1) + GRACE + timedelta(minutes=5)).total_seconds()) / 3600
    assert price * hours <= first <= price * hours + Decimal("0.01")
    d.run(limit=timedelta(minutes=30))
    assert worst(d) == first


def test_nothing_bounds_a_pod_whose_timer_may_be_held_up():
    unsaved = timed(cells=1)
    assert worst(unsaved) is None
    no_key = Driver(spec_of(spend={"ttl": "1h"}, **DISPOSABLE))
    no_key.run(until=lambda: no_key.pod_id is not None)
    no_key.host().timer_says = ("Refused", "RUNPOD_API_KEY is not in the pod's environment")
    no_key.run(limit=timedelta(minutes=5))
    assert worst(no_key) is None
    assert no_key.status.attempt is not None and no_key.status.attempt.timer is not None
    assert no_key.status.attempt.timer.problem == "RUNPOD_API_KEY is not in the pod's environment"
    dead = timed(**DISPOSABLE)
    assert worst(dead) is not None
    dead.host().agent_running = dead.host().agent_starts = False
    dead.run(limit=timedelta(minutes=5))
    assert worst(dead) is None
