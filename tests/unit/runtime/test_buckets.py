"""Where the money goes: one bucket for each pod, and unknown is one of them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gpupod_operator.core.provider import ProviderPod, ProviderState, Stamp
from gpupod_operator.render.rows import PodObject, pod_object
from gpupod_operator.runtime.buckets import Bucket, Cloud, Entry, held, per_bucket, sort_out

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2026-12-01T10:00:00Z",
}


def recorded(**status: Any) -> PodObject:
    base = {
        "phase": "Ready",
        "attempt": {"podId": "p1"},
        "account": {"id": "acc"},
        "pod": {"id": "p1", "providerStatus": "RUNNING"},
        "cost": {"perHour": "2.50"},
        "workload": {"state": "Running"},
        "conditions": [READY],
    }
    return pod_object(
        {
            "metadata": {
                "name": "x",
                "namespace": "lab",
                "uid": "uid-x",
                "creationTimestamp": "2026-12-01T10:00:00Z",
            },
            "spec": {},
            "status": base | status,
        }
    )


def listed(pod_id: str = "p1", *, owner: str | None = "me/lab/x/uid-x", **changes: Any) -> ProviderPod:
    given: dict[str, Any] = {
        "state": ProviderState.RUNNING,
        "raw_state": "RUNNING",
        "cost_per_hour": Decimal("2.69"),
        "created_at": NOW - timedelta(hours=1),
        "stamp": Stamp(owner, "n") if owner is not None else None,
    }
    return ProviderPod(pod_id, f"name-{pod_id}", **(given | changes))


def cloud(*pods: ProviderPod) -> Cloud:
    return Cloud("acc", pods, "me")


def sorted_out(objects: list[PodObject], one: Cloud | None) -> list[Entry]:
    known = [h for h in (held(o.namespace, o.name, o.uid, o.status) for o in objects) if h is not None]
    return sort_out(known, [one] if one is not None else [], NOW)


def episode(minutes: int) -> dict[str, Any]:
    since = (NOW - timedelta(minutes=minutes)).isoformat()
    return {"episode": {"kind": "PortLost", "firstSeen": since}}


@pytest.mark.parametrize(
    ("status", "bucket"),
    [
        ({}, Bucket.ACTIVE),
        ({"workload": {"state": "Unknown"}}, Bucket.ACTIVE),
        ({"workload": {"state": "Succeeded"}}, Bucket.IDLE),
        ({"workload": None}, Bucket.IDLE),
        (episode(29), Bucket.ACTIVE),
        (episode(31), Bucket.UNREACHABLE),
        ({"pod": {"providerStatus": "EXITED"}}, Bucket.STOPPED),
        ({"pod": {"providerStatus": "HIBERNATING"}}, Bucket.UNKNOWN),
        ({"pod": None}, Bucket.UNKNOWN),
        ({"attempt": {"intent": "Create", "nonce": "n"}}, Bucket.UNKNOWN),
    ],
)
def test_a_recorded_pod_is_judged_by_its_status(status, bucket):
    (entry,) = sorted_out([recorded(**status)], None)
    assert entry.bucket is bucket


def test_an_object_without_a_pod_costs_nothing_and_is_in_no_bucket():
    assert sorted_out([recorded(attempt={"intent": "None"}), recorded(attempt=None)], None) == []


@pytest.mark.parametrize(
    ("pod", "bucket"),
    [
        (listed("p9", owner=None), Bucket.FOREIGN),
        (listed("p9", owner="other/lab/x/uid-x"), Bucket.FOREIGN),
        (listed("p9"), Bucket.UNKNOWN),
        (listed("p9", owner="me/lab/gone/uid-gone"), Bucket.ORPHAN),
        (listed("p9", owner="me/lab/gone/uid-gone", created_at=NOW - timedelta(minutes=4)), Bucket.UNKNOWN),
    ],
)
def test_a_pod_that_no_object_records_is_judged_by_its_stamp(pod, bucket):
    entries = {entry.pod_id: entry for entry in sorted_out([recorded()], cloud(listed(), pod))}
    assert entries["p9"].bucket is bucket
    assert entries["p1"].bucket is Bucket.ACTIVE


def test_a_released_pod_is_no_leak():
    released = recorded(released=["p9"])
    entries = sorted_out([released], cloud(listed(), listed("p9", owner="me/lab/gone/uid-gone")))
    assert [entry.bucket for entry in entries if entry.pod_id == "p9"] == [Bucket.FOREIGN]


def test_a_recorded_pod_that_the_list_lacks_is_unknown_and_one_of_another_account_is_not():
    assert [e.bucket for e in sorted_out([recorded()], cloud())] == [Bucket.UNKNOWN]
    assert [e.bucket for e in sorted_out([recorded(account={"id": "b"})], cloud())] == [Bucket.ACTIVE]


def test_the_list_knows_the_price_and_the_state_better_than_an_old_status():
    (entry,) = sorted_out([recorded()], cloud(listed()))
    assert entry.per_hour == Decimal("2.69")
    (stopped,) = sorted_out([recorded()], cloud(listed(state=ProviderState.EXITED)))
    assert stopped.bucket is Bucket.STOPPED


def test_an_unknown_price_is_counted_and_not_taken_for_zero():
    table = {row[0]: row[1:] for row in per_bucket(sorted_out([], cloud(listed("p9", cost_per_hour=None))))}
    assert table[Bucket.ORPHAN] == (1, Decimal(0), 1)
