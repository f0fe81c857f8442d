"""What a person is told about one pod."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from gpupod_operator.api.conditions import Condition
from gpupod_operator.api.gpupod_status import CostStatus, GpuPodStatus
from gpupod_operator.cli.plugin.why import as_it_should_be, explain, remedy
from gpupod_operator.cli.plugin.words import distance, dollars, size, total_now

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def condition(kind: str, status: str, reason: str = "Unreachable") -> Condition:
    return Condition(type=kind, status=status, reason=reason, message="m", last_transition_time=NOW)


@pytest.mark.parametrize(
    ("kind", "status", "reason", "well"),
    [
        ("Ready", "True", "Ready", True),
        ("Ready", "False", "Unreachable", False),
        ("ArtifactsSafe", "Unknown", "NoCellsDeclared", False),
        ("Wedged", "True", "PortLost", False),
        ("Wedged", "False", "NoFault", True),
        ("Stalled", "True", "NoCapacity", False),
        ("Reconciling", "True", "Starting", True),
        ("WorkloadRunning", "False", "Succeeded", True),
        ("WorkloadRunning", "False", "Failed", False),
    ],
)
def test_a_condition_is_shown_when_somebody_should_look_at_it(kind, status, reason, well):
    assert as_it_should_be(condition(kind, status, reason)) is well


def test_an_object_that_no_operator_has_seen_says_so():
    lines = explain("x", 1, GpuPodStatus(), NOW)
    assert lines[0] == "x: not seen by an operator yet"
    assert "is the operator running?" in lines[1]


def test_a_reason_of_a_newer_operator_is_shown_without_a_crash():
    assert "older than the operator" in remedy("BrandNew")


def test_a_total_is_the_checkpoint_and_what_ran_up_since():
    cost = CostStatus(
        per_hour=Decimal("2.40"), since=datetime(2026, 12, 1, 11, tzinfo=UTC), accrued_at_since=Decimal(1)
    )
    assert total_now(cost, NOW) == Decimal("3.40")
    assert total_now(None, NOW) == 0
    lines = explain("x", 1, GpuPodStatus(phase="Ready", observed_generation=1, cost=cost), NOW)
    assert "costs       $2.40/h now, $3.40 in all attempts" in lines


def test_amounts_distances_and_sizes_are_written_for_people():
    assert [dollars(Decimal(a)) for a in ("2", "2.5", "0.0342")] == ["$2.00", "$2.50", "$0.0342"]
    assert dollars(None) == "?"
    assert distance(datetime(2026, 12, 1, 12, 3, 20, tzinfo=UTC), NOW) == "in 3m20s"
    assert distance(datetime(2026, 11, 30, 11, 59, tzinfo=UTC), NOW) == "1d1m ago"
    assert [size(n) for n in (None, 12, 2048, 5 * 1024**4)] == ["-", "12 B", "2.0 KiB", "5.0 TiB"]
