"""What all objects use and were promised: nobody is forgotten, nobody counts twice."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from gpupod_operator.core.provider import Inventory, InventoryState, ProviderPod, ProviderState
from gpupod_operator.core.room import Ceilings, Room, exceeded
from gpupod_operator.runtime.commitments import Commitments

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def inventory(**prices: str) -> Inventory:
    pods = {
        name: ProviderPod(name, name, ProviderState.RUNNING, "RUNNING", cost_per_hour=Decimal(price))
        for name, price in prices.items()
    }
    return Inventory(InventoryState.COMPLETE, "Observed", "", NOW, NOW, 1, pods)


def gpupod(name: str, age: int = 0, namespace: str = "ml", *, spec: Any = None, **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {
        "metadata": metadata | {"creationTimestamp": f"2026-03-01T12:00:{age:02}Z"},
        "spec": spec or {},
        "status": {"account": {"id": "acc"}} | status,
    }


RUNNING = {"attempt": {"podId": "p1", "perHour": "3"}, "pod": {"providerStatus": "RUNNING"}}
STOPPED = {"attempt": {"podId": "p1", "perHour": "3"}, "pod": {"providerStatus": "EXITED"}}
CREATING = {"attempt": {"intent": "Create", "perHour": "3"}}
STARTING = {"attempt": {"podId": "p1", "intent": "Start", "perHour": "3"}, "pod": {"providerStatus": "EXITED"}}
REPLACED = {"attempt": {"perHour": "3"}, "migration": {"step": "Create"}}
IDLE = {"attempt": {"intent": "None", "perHour": "3"}}
ELSEWHERE = CREATING | {"account": {"id": "other"}}


@pytest.mark.parametrize(
    ("status", "listed", "account", "namespace", "pods"),
    [
        (RUNNING, {"p1": "2.5"}, "2.5", "3", 1),
        (RUNNING, {}, "3", "3", 1),
        (STOPPED, {"p1": "0"}, "0", "0", 0),
        (STARTING, {"p1": "0"}, "3", "3", 1),
        (CREATING, {}, "3", "3", 1),
        (CREATING, {"foreign": "7"}, "10", "3", 1),
        (REPLACED, {}, "3", "3", 1),
        (IDLE, {}, "0", "0", 0),
        (ELSEWHERE, {}, "0", "3", 1),
    ],
)
def test_what_one_other_object_takes(status, listed, account, namespace, pods):
    held = Commitments(Ceilings(pods=9))
    held.changed(("ml", "other"), gpupod("other", **status))
    held.changed(("ml", "me"), gpupod("me"))
    room = held.room("uid-me", "ml", "acc", inventory(**listed))
    assert room is not None
    assert (room.account, room.namespace, room.pods) == (Decimal(account), Decimal(namespace), pods)
    elsewhere = held.room("uid-me", "lab", "acc", inventory(**listed))
    assert elsewhere is not None
    assert elsewhere.namespace == 0


def test_what_an_object_has_itself_is_not_in_its_own_way():
    held = Commitments(Ceilings(pods=1))
    held.changed(("ml", "me"), gpupod("me", **STARTING))
    room = held.room("uid-me", "ml", "acc", inventory(p1="3"))
    assert room is not None
    assert (room.account, room.pods) == (0, 0)


def test_a_promise_counts_from_the_moment_of_the_decision_until_it_is_released():
    held = Commitments(Ceilings(hourly_account=Decimal(5)))
    for name in ("a", "b"):
        held.changed(("ml", name), gpupod(name))
    assert held.take("uid-a", "acc", inventory(), Decimal(3)) is None
    refused = held.take("uid-b", "acc", inventory(), Decimal(3))
    assert refused is not None
    assert refused.reason == "AccountCeiling"
    held.release("uid-a")
    assert held.take("uid-b", "acc", inventory(), Decimal(3)) is None


def waiting(name: str, age: int, reason: str = "AccountCeiling", *, stalled: bool = False, **more: Any) -> dict:
    conditions = [
        {"type": "SpendAllowed", "status": "False", "reason": reason},
        {"type": "Stalled", "status": str(stalled), "reason": reason},
    ]
    return gpupod(name, age, conditions=conditions, **more)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (waiting("old", 1), "old"),
        (waiting("young", 9), None),
        (waiting("old", 1, stalled=True), None),
        (waiting("old", 1, spec={"paused": True}), None),
        (waiting("old", 1, spec={"state": "Stopped"}), None),
        (waiting("old", 1, account={"id": "other"}), None),
        (waiting("old", 1, "NamespaceCeiling", namespace="lab"), None),
        (waiting("old", 1, "PodCeiling", namespace="lab"), "old"),
    ],
)
def test_the_older_one_is_first(other, told):
    held = Commitments(Ceilings(hourly_account=Decimal(5)))
    held.changed(("x", "other"), other)
    held.changed(("ml", "me"), gpupod("me", 5))
    room = held.room("uid-me", "ml", "acc", inventory())
    assert room is not None
    assert room.ahead == told


def test_who_waits_is_woken_when_room_comes_free():
    held = Commitments(Ceilings(pods=1))
    held.changed(("ml", "a"), gpupod("a", **RUNNING))
    assert held.changed(("ml", "b"), waiting("b", 2)) == frozenset()
    assert held.changed(("ml", "a"), gpupod("a", **STOPPED)) == {"uid-b"}


@pytest.mark.parametrize(
    ("ceilings", "price", "reason", "never"),
    [
        (Ceilings(hourly_account=Decimal(10)), "3", None, None),
        (Ceilings(hourly_account=Decimal(10)), "6", "AccountCeiling", False),
        (Ceilings(hourly_account=Decimal(10)), "11", "AccountCeiling", True),
        (Ceilings(hourly_namespace=Decimal(5)), "3.01", "NamespaceCeiling", False),
        (Ceilings(hourly_namespace=Decimal(5)), "3", None, None),
        (Ceilings(pods=2), "1", "PodCeiling", False),
        (Ceilings(pods=3), "1", None, None),
        (Ceilings(pods=0), "1", "PodCeiling", True),
        (Ceilings(hourly_account=Decimal(5)), None, "AccountCeiling", False),
    ],
)
def test_a_ceiling_is_reached_and_not_passed(ceilings, price, reason, never):
    room = Room(ceilings, account=Decimal(5), namespace=Decimal(2), pods=2)
    found = exceeded(room, Decimal(price) if price is not None else None)
    assert (found and str(found.reason), found and found.never) == (reason, never)
