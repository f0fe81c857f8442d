"""An invariant that cannot fail is no invariant: each is shown a world in which it is broken."""

import pytest

from worldkit.invariants import broken

OWNER = "inst/ns/one/u1"
ONE = {
    "podId": "p1",
    "name": "one-n1",
    "owner": OWNER,
    "created": "2026-01-01T00:00:00",
    "deleted": "2026-01-01T01:00:00",
}
TWO = {"podId": "p2", "name": "one-n2", "owner": OWNER, "created": "2026-01-01T01:00:01", "deleted": None}
STRANGER = {"podId": "f1", "name": "f", "owner": None, "created": "2026-01-01T00:00:00", "deleted": None}
OBJECT = {"metadata": {"uid": "u1"}, "status": {"receipt": {"podId": "p1"}}}
BARE = {"metadata": {"uid": "u1"}, "status": {"attempt": {"podId": "p2", "nonce": "n2"}}}
GHOSTLY = {"metadata": {"uid": "u1"}, "status": {"attempt": {"podId": "p2", "nonce": "n2", "retiredNonces": ["n1"]}}}
DELETED = {"method": "DELETE", "path": "/v2/pods/p1", "status": 204}


def test_a_sound_world_breaks_nothing():
    requests = [DELETED, {"method": "GET", "path": "/v2/pods/f1", "status": 200}]
    assert broken([ONE, TWO, STRANGER], requests, [OBJECT], "all well", ["hf_x"]) == []


@pytest.mark.parametrize(
    ("name", "ledger", "requests", "objects", "logs"),
    [
        ("I1", [ONE, {**TWO, "created": "2026-01-01T00:59:59"}], [], [OBJECT], ""),
        ("I1", [{**ONE, "deleted": None}, TWO], [], [OBJECT], ""),
        ("I2", [TWO], [], [], ""),
        ("I3", [STRANGER], [{"method": "POST", "path": "/v2/pods/f1/action"}], [], ""),
        ("I4", [ONE, TWO], [DELETED], [BARE], ""),
        ("I8", [], [], [], "token hf_x given"),
        ("I8", [], [], [{"metadata": {"uid": "u1"}, "status": {"message": "hf_x"}}], ""),
        ("a pass failed", [], [], [], "a pass failed; nothing was acted on"),
    ],
)
def test_a_doctored_world_is_caught(name, ledger, requests, objects, logs):
    found = broken(ledger, requests, objects, logs, ["hf_x"])
    assert len(found) == 1
    assert found[0].startswith(name)


def test_a_ghost_needs_no_receipt():
    assert broken([ONE, TWO], [DELETED], [GHOSTLY], "", []) == []


def test_what_the_cluster_shows_is_looked_through():
    assert broken([], [], [], "", ["hf_x"], [{"kind": "Event", "note": "with hf_x"}]) == ["I8: a secret is shown"]
