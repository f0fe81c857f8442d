"""Migrations: every step survives a crash, the budget holds, approvals and policies decide."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.provider import Failure
from gpupod_operator.core.shell import SshClass
from podkit.driver import Crashed, Driver, spec_of

WORK = {"command": ["run"]}


def wedged(**changes) -> Driver:
    d = Driver(spec_of(**{"remediation": {"artifacts": "Disposable"}, **changes}))
    d.run(until=lambda: d.status.phase == "Ready")
    d.run(limit=timedelta(minutes=1))
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-1")
    return d


def moved(d: Driver) -> bool:
    return d.pod_id == "pod-2" and d.status.phase == "Ready"


def test_a_migration_deletes_first_proves_gone_and_only_then_creates():
    d = wedged()
    d.run(until=lambda: moved(d), limit=timedelta(hours=1))
    assert [c.verb for c in d.cloud.calls] == ["create", "delete", "create"]
    gone, again = d.cloud.calls[1:]
    assert again.at - gone.at >= timedelta(seconds=15)
    assert d.status.migrations == 1
    assert d.status.migration.step is None
    assert d.status.attempt.cause == "Migration"
    assert d.status.history[-1].pod_id == "pod-1"
    assert d.status.history[-1].logs == "logs"


@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("crash", ["intent", "answer"])
def test_a_crash_at_any_act_of_a_migration_is_resumed(number, crash):
    d = wedged(workload=WORK)
    seen = len([p for p in d.plans if p.action is not None])
    died = False
    end = d.now + timedelta(hours=1)
    while not moved(d) and d.now < end:
        acts = len([p for p in d.plans if p.action is not None]) - seen
        if not died and acts == number - 1:
            d.crash = crash
        try:
            d.step()
        except Crashed:
            died = True
        if d.plans[-1].action is None:
            d.cloud.now += timedelta(seconds=15)
            d.cloud.tick()
    assert moved(d)
    assert set(d.cloud.pods) == {"pod-2"} or len(d.cloud.billed()) == 1
    assert d.status.migration.count_in_window == 1
    assert {c.pod_id for c in d.cloud.sent("delete")} <= {"pod-1", "pod-2"}


def test_a_restart_after_every_pass_changes_nothing():
    d = wedged(workload=WORK)
    for _ in range(200):
        d.step()
        d.restart()
        if d.plans[-1].action is None:
            d.cloud.now += timedelta(seconds=15)
            d.cloud.tick()
    assert moved(d)
    assert [c.verb for c in d.cloud.calls] == ["create", "delete", "create"]


def test_a_delete_without_effect_is_repeated_with_a_new_permission_and_counted_once():
    d = wedged()
    d.cloud.zombie = True
    d.run(limit=timedelta(minutes=30))
    assert len(d.cloud.sent("delete")) > 2
    assert len(d.cloud.sent("create")) == 1
    gaps = [b.at - a.at for a, b in zip(d.cloud.sent("delete"), d.cloud.sent("delete")[1:], strict=False)]
    assert min(gaps) >= timedelta(seconds=30)
    assert d.status.migration.count_in_window == 1
    d.cloud.zombie = False
    d.run(until=lambda: moved(d), limit=timedelta(minutes=10))


def test_the_budget_of_the_window_is_final_until_it_ends():
    d = wedged(remediation={"artifacts": "Disposable", "maxMigrations": 1, "window": "6h"})
    d.run(until=lambda: moved(d), limit=timedelta(hours=1))
    d.host().ssh = SshClass.TIMEOUT
    d.cloud.wedge("pod-2")
    d.run(limit=timedelta(hours=4))
    assert len(d.cloud.sent("delete")) == 1
    assert d.condition("Stalled") == ("True", Reason.MIGRATION_BUDGET_EXHAUSTED)
    assert "gpupod.dev/migrate" not in d.status.message
    d.run(until=lambda: d.pod_id == "pod-3" and d.status.phase == "Ready", limit=timedelta(hours=4))


def test_report_moves_nothing_until_a_person_asks():
    d = wedged(remediation={"artifacts": "Disposable", "action": "Report"})
    d.run(limit=timedelta(hours=2))
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert d.condition("Wedged")[0] == "True"
    d.annotations["gpupod.dev/migrate"] = "pod-1"
    d.run(until=lambda: moved(d), limit=timedelta(minutes=10))


def test_a_migrate_annotation_of_another_pod_does_nothing():
    d = wedged(remediation={"artifacts": "Disposable", "action": "Report"})
    d.annotations["gpupod.dev/migrate"] = "pod-0"
    d.run(limit=timedelta(hours=1))
    assert d.cloud.sent("delete") == []


def test_a_healthy_pod_is_moved_when_a_person_asks():
    d = Driver(spec_of(remediation={"artifacts": "Disposable"}))
    d.run(until=lambda: d.status.phase == "Ready")
    d.annotations["gpupod.dev/migrate"] = "pod-1"
    d.run(until=lambda: moved(d), limit=timedelta(minutes=10))
    d.run(limit=timedelta(minutes=30))
    assert len(d.cloud.sent("delete")) == 1


def test_action_stop_stops_the_wedged_pod_and_it_stays_ended():
    d = wedged(remediation={"artifacts": "Disposable", "action": "Stop"})
    d.run(until=lambda: d.status.phase == "Stopped", limit=timedelta(hours=1))
    assert d.status.ended.act == "Stop"
    assert d.status.receipt.reason == "Stop"
    assert d.condition("Provisioned") == ("False", Reason.STOPPED_BY_ORDER)
    d.run(limit=timedelta(hours=2))
    assert [c.verb for c in d.cloud.calls] == ["create", "stop"]


def test_manual_approval_holds_until_the_annotation_and_not_for_ever():
    d = wedged(remediation={"artifacts": "Disposable", "approval": "Manual"})
    d.run(limit=timedelta(hours=2))
    assert d.cloud.sent("delete") == []
    assert d.condition("Stalled") == ("True", Reason.APPROVAL_REQUIRED)
    d.annotations["gpupod.dev/approve-terminate"] = "pod-1"
    d.run(until=lambda: moved(d), limit=timedelta(minutes=10))
    assert "approve-terminate" in d.status.receipt.approved_by


def test_an_approval_expires_a_day_after_it_was_first_seen():
    d = wedged(remediation={"artifacts": "Disposable", "approval": "Manual"})
    d.edit(paused=True)
    d.annotations["gpupod.dev/approve-terminate"] = "pod-1"
    d.step()
    d.cloud.now += timedelta(hours=25)
    d.edit(paused=False)
    d.run(limit=timedelta(hours=1))
    assert d.cloud.sent("delete") == []
    assert d.condition("Stalled") == ("True", Reason.APPROVAL_EXPIRED)


def test_without_cells_nothing_automatic_ends_a_pod_that_was_worked_on():
    d = wedged(remediation={"artifacts": "RequireVerified"}, workload=WORK)
    d.run(limit=timedelta(hours=5))
    assert [c.verb for c in d.cloud.calls] == ["create"]
    assert d.condition("ArtifactsSafe")[0] == "Unknown"


def test_allow_paid_false_lets_the_pod_go_and_defers_the_next():
    d = wedged()
    d.edit(spend={"allow_paid": False})
    d.run(until=lambda: d.status.phase == "Deferred", limit=timedelta(hours=1))
    assert d.cloud.pods == {}
    d.run(limit=timedelta(hours=1))
    assert len(d.cloud.sent("create")) == 1
    d.edit(spend={"allow_paid": True})
    d.run(until=lambda: moved(d), limit=timedelta(minutes=10))


def test_a_migration_waits_for_capacity_and_ends_when_there_is_some():
    d = wedged()
    d.cloud.script = [Failure.NO_CAPACITY] * 3
    d.run(until=lambda: moved(d), limit=timedelta(hours=1))
    assert d.status.migrations == 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_unknown_inventory_holds_a_migration_at_every_step(when):
    d = wedged()
    if when == "after":
        d.run(until=lambda: d.cloud.sent("delete") != [], limit=timedelta(hours=1))
    else:
        d.run(limit=timedelta(minutes=14))
    sent = len(d.cloud.calls)
    d.cloud.listing = "unknown"
    d.run(limit=timedelta(hours=3))
    assert len(d.cloud.calls) == sent
    assert d.pod_id == "pod-1"
    d.cloud.listing = "ok"
    d.run(until=lambda: moved(d), limit=timedelta(hours=1))


def test_the_new_pod_is_not_taken_for_the_end_of_the_move_before_it_is_ready():
    d = wedged(workload=WORK)
    d.hosts["pod-2"] = d.host("pod-2")
    d.hosts["pod-2"].ssh = SshClass.REFUSED
    d.run(until=lambda: d.pod_id == "pod-2", limit=timedelta(hours=1))
    d.run(limit=timedelta(minutes=3))
    assert d.status.migrations is None
    d.hosts["pod-2"].ssh = SshClass.OK
    d.run(until=lambda: d.status.migrations == 1)
    assert d.hosts["pod-2"].acts == ["launch"]


def test_each_attempt_in_the_history_has_its_own_cost():
    d = Driver(spec_of(remediation={"artifacts": "Disposable"}))
    for number in (1, 2):
        d.run(until=lambda n=number: d.pod_id == f"pod-{n}" and d.status.phase == "Ready", limit=timedelta(hours=1))
        d.run(limit=timedelta(hours=1))
        d.annotations["gpupod.dev/migrate"] = d.pod_id
    d.run(until=lambda: len(d.status.history) == 2, limit=timedelta(hours=1))
    first, second = (entry.cost for entry in d.status.history)
    assert abs(first - second) < Decimal("0.2"), "both ran about an hour at the same price"
    assert abs(accrued_total(d) - first - second) < Decimal("0.2")


def accrued_total(d: Driver) -> Decimal:
    return d.status.cost.accrued_at_since
