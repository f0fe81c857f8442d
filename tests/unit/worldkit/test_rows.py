"""A row that goes on no knowledge is found, and one that may go is nobody's fault."""

from datetime import UTC, datetime, timedelta

import pytest

from worldkit.recorder import Sighting
from worldkit.rows import vanished

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def pod(address="1.2.3.4:22", observed="True", pod_id="p1", registered="True", **spec):
    status = {
        "attempt": {"podId": pod_id},
        "endpoint": {"address": address} if address else None,
        "conditions": [
            {"type": "ProviderObserved", "status": observed},
            {"type": "Registered", "status": registered},
        ],
    }
    return {"metadata": {"name": "one", "uid": "u1"}, "spec": spec, "status": status}


def looks(*seen):
    return [
        Sighting(AT + timedelta(seconds=n), {"u1": raw}, frozenset(["one"] if row else []))
        for n, (raw, row) in enumerate(seen)
    ]


def leaving(raw):
    return {**raw, "metadata": {**raw["metadata"], "deletionTimestamp": "now"}}


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ([(pod(), True), (pod(address=None, observed="False"), False)], 1),
        ([(pod(), True), (pod(), False), (pod(), False)], 1),
        ([(pod(), True), (pod(registered="False", observed="False"), False), (pod(observed="False"), False)], 1),
        ([(pod(), True), (pod(registered="False"), False), (pod(registered="False"), False)], 0),
        ([(pod(), True), (pod(), False), (pod(), True)], 0),
        ([(pod(), True), (pod(address=None), False), (pod(address=None), False)], 0),
        ([(pod(), True), (pod(pod_id="p2", address=None, observed="False"), False)], 0),
        ([(pod(), True), (pod(podsConf={"publish": False}), False), (pod(podsConf={"publish": False}), False)], 0),
        ([(pod(), True), (leaving(pod()), False), (leaving(pod()), False)], 0),
        ([(pod(), True)] * 3, 0),
    ],
)
def test_a_row_goes_for_a_reason_that_is_known(seen, told):
    found = list(vanished(looks(*seen)))
    assert len(found) == told
    assert all(sentence.startswith("I7") for sentence in found)


def test_looks_without_an_api_server_say_nothing():
    blind = Sighting(AT + timedelta(seconds=1))
    assert list(vanished([*looks((pod(), True)), blind, *looks((pod(), True))])) == []
