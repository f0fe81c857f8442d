"""What would bill on without an operator."""

from __future__ import annotations

from typing import Any

from gpupod_operator.runtime.leaving import would_bill_on


def gpupod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "team", "name": "sweep"}, "status": status}


def test_a_pod_is_named_with_its_price_running_or_stopped() -> None:
    running = gpupod(attempt={"podId": "p1"}, pod={"providerStatus": "RUNNING"}, cost={"perHour": "2.69"})
    assert would_bill_on([running]) == ["team/sweep: pod p1 is RUNNING and costs $2.69/h"]
    assert would_bill_on([gpupod(attempt={"podId": "p1"})]) == [
        "team/sweep: pod p1 is not seen yet and costs an unknown price"
    ]


def test_a_create_under_way_counts() -> None:
    assert would_bill_on([gpupod(attempt={"intent": "Create", "nonce": "n"})]) != []


def test_nothing_else_does() -> None:
    assert would_bill_on([gpupod(), gpupod(attempt={"intent": "None"}), {"metadata": gpupod()["metadata"]}]) == []
    assert would_bill_on([gpupod(attempt={"podId": "p1"}, released=["p1"])]) == []
