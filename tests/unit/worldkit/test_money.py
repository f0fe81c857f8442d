"""A bill that is higher than the status says is found."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from worldkit.money import beyond

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def gpupod(**cost):
    status = {"attempt": {"podId": "p1"}, "cost": {"since": "2026-03-01T11:00:00Z", "perHour": "2.00"} | cost}
    return {"metadata": {"name": "one", "uid": "u1"}, "status": status}


@pytest.mark.parametrize(
    ("billed", "cost", "told"),
    [
        ("1.99", {}, []),
        ("2.10", {}, ["money"]),
        ("2.10", {"accruedAtSince": "0.20"}, []),
        ("1.00", {"maxBurn": "0.90"}, ["I6"]),
        ("1.00", {"maxBurn": "1.00"}, []),
    ],
)
def test_the_ledger_is_held_against_the_status(billed, cost, told):
    ledger = [
        {"owner": "inst/ns/one/u1", "billed": str(Decimal(billed) * 60)},
        {"owner": "inst/ns/two/u2", "billed": "999"},
        {"owner": None, "billed": "999"},
    ]
    found = list(beyond(ledger, [gpupod(**cost)], Decimal(60), NOW))
    assert [sentence.partition(":")[0] for sentence in found] == told


def test_what_may_still_land_is_not_known_yet():
    one = gpupod()
    one["status"]["attempt"]["mayLandUntil"] = "2026-03-01T13:00:00Z"
    assert list(beyond([{"owner": "inst/ns/one/u1", "billed": "600"}], [one], Decimal(60), NOW)) == []
