"""Two objects that publish one name."""

import random
from collections.abc import Callable

from gpupod_operator.api.reasons import Reason
from gpupod_operator.render.registration import registration
from gpupod_operator.render.rows import PodObject

Make = Callable[..., PodObject]

LIVE = {"host": "203.0.113.5", "port": 40022}
OLD, NEW = "2026-11-30T12:00:00Z", "2026-11-30T12:00:01Z"


def test_older_object_holds_the_name(make: Make):
    older = make("a", conf={"name": "pod-1"}, endpoint=LIVE, created=OLD)
    younger = make("b", conf={"name": "pod-1"}, endpoint=LIVE, created=NEW)
    found = registration([younger, older])
    assert [row.name for row in found.rows] == ["pod-1"]
    assert found.verdicts["uid-a"].registered
    assert not found.verdicts["uid-b"].registered
    assert found.verdicts["uid-b"].reason is Reason.NAME_CONFLICT
    assert "GpuPod a" in found.verdicts["uid-b"].message
    assert found.waiting == {"uid-a": ("uid-b",)}


def test_uid_decides_between_objects_of_one_second(make: Make):
    pods = [make(n, conf={"name": "pod-1"}, endpoint=LIVE, uid=u) for n, u in (("a", "z"), ("b", "y"))]
    found = registration(pods)
    assert found.verdicts["y"].registered
    assert not found.verdicts["z"].registered


def test_holder_keeps_the_name_while_it_has_no_row(make: Make):
    older = make("a", conf={"name": "pod-1"}, created=OLD)
    younger = make("b", conf={"name": "pod-1"}, endpoint=LIVE, created=NEW)
    found = registration([older, younger])
    assert found.rows == ()
    assert found.verdicts["uid-a"].reason is Reason.NO_ENDPOINT
    assert found.verdicts["uid-b"].reason is Reason.NAME_CONFLICT


def test_younger_gets_the_name_when_the_holder_is_gone(make: Make):
    younger = make("b", conf={"name": "pod-1"}, endpoint=LIVE, created=NEW)
    assert registration([younger]).verdicts["uid-b"].registered


def test_unpublished_object_claims_no_name(make: Make):
    hidden = make("a", conf={"name": "pod-1", "publish": False}, endpoint=LIVE, created=OLD)
    younger = make("b", conf={"name": "pod-1"}, endpoint=LIVE, created=NEW)
    found = registration([hidden, younger])
    assert found.verdicts["uid-b"].registered
    assert found.verdicts["uid-a"].reason is Reason.PUBLISH_DISABLED


def test_default_name_conflicts_with_an_explicit_one(make: Make):
    older = make("pod-1", endpoint=LIVE, created=OLD)
    younger = make("b", conf={"name": "pod-1"}, endpoint=LIVE, created=NEW)
    assert registration([older, younger]).verdicts["uid-b"].reason is Reason.NAME_CONFLICT


def test_result_does_not_depend_on_the_order_of_objects(make: Make):
    pods = [
        make(f"g{n}", conf={"name": f"pod-{n % 5}"}, endpoint=LIVE, created=f"2026-11-30T12:00:{n % 7:02d}Z")
        for n in range(20)
    ]
    expected = registration(pods)
    for seed in range(20):
        shuffled = pods[:]
        random.Random(seed).shuffle(shuffled)
        found = registration(shuffled)
        assert (found.rows, found.verdicts) == (expected.rows, expected.verdicts)
