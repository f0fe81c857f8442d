"""What people did not want, and the vendor was asked for all the same, is found."""

from datetime import UTC, datetime, timedelta

import pytest

from worldkit.recorder import Sighting, against_will

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROW = {"podId": "p1", "owner": "inst/ns/one/u1"}
PAUSED, UNPAID, FREE = {"paused": True}, {"spend": {"allowPaid": False}}, {}
CREATE = ("POST", "/v2/pods", 201)


def request(method, path, status):
    return {"at": AT.isoformat(), "method": method, "path": path, "status": status, "pod": "p1"}


def looks(before, after):
    second = timedelta(seconds=1)
    return [Sighting(AT - second, {"u1": {"spec": before}}), Sighting(AT + second, {"u1": {"spec": after}})]


@pytest.mark.parametrize(
    ("call", "before", "after", "told"),
    [
        (("DELETE", "/v2/pods/p1", 204), PAUSED, PAUSED, "I5"),
        (("POST", "/v2/pods/p1/action", 200), PAUSED, PAUSED, "I5"),
        (CREATE, UNPAID, UNPAID, "I11"),
        (CREATE, FREE, UNPAID, None),
        (CREATE, UNPAID, FREE, None),
        (("POST", "/v2/pods/p1/action", 200), UNPAID, UNPAID, None),
        (("GET", "/v2/pods/p1", 200), PAUSED, PAUSED, None),
        (CREATE, FREE, FREE, None),
    ],
)
def test_a_call_is_held_against_what_was_wanted_around_it(call, before, after, told):
    found = list(against_will([ROW], [request(*call)], looks(before, after)))
    assert [sentence.partition(":")[0] for sentence in found] == ([told] if told else [])
