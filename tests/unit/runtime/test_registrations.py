"""Names in pods.conf, followed object by object, agree with the decision over the whole namespace."""

import random

from gpupod_operator.render.registration import registration
from gpupod_operator.render.rows import pod_object
from gpupod_operator.runtime.registrations import Registrations


def gpupod(name, *, uid=None, asks=None, created="2026-03-01T12:00:00Z", namespace="ns", port=22001, publish=True):
    return {
        "metadata": {"namespace": namespace, "name": name, "uid": uid or f"uid-{name}", "creationTimestamp": created},
        "spec": {"podsConf": {"publish": publish} | ({"name": asks} if asks else {})},
        "status": {
            "attempt": {"podId": f"pod-{name}"},
            "endpoint": {"address": f"1.2.3.4:{port}", "host": "1.2.3.4", "port": port},
        },
    }


def feed(registrations, *raws):
    return [registrations.changed((r["metadata"]["namespace"], r["metadata"]["name"]), r) for r in raws]


def test_the_older_object_holds_the_name_and_the_younger_is_woken_when_it_goes():
    registrations = Registrations()
    old, young = gpupod("a", asks="x", created="2026-03-01T11:00:00Z"), gpupod("b", asks="x")
    feed(registrations, young, old)
    assert [row.pod_id for row in registrations.rows("ns")] == ["pod-a"]
    assert not registrations.verdict(("ns", "b")).registered
    assert registrations.changed(("ns", "a"), None) == {"uid-b"}
    assert registrations.verdict(("ns", "b")).registered
    assert [row.pod_id for row in registrations.rows("ns")] == ["pod-b"]


def test_an_object_that_takes_another_name_frees_the_old_one():
    registrations = Registrations()
    feed(registrations, gpupod("a", asks="x", created="2026-03-01T11:00:00Z"), gpupod("b", asks="x"))
    assert not registrations.verdict(("ns", "b")).registered
    assert feed(registrations, gpupod("a", created="2026-03-01T11:00:00Z")) == [{"uid-b"}]
    assert registrations.verdict(("ns", "a")).registered
    assert registrations.verdict(("ns", "b")).registered


def test_a_change_of_one_object_parses_no_other():
    registrations = Registrations()
    one, other = gpupod("a"), gpupod("b")
    feed(registrations, one, other)
    registrations.rows("ns")
    before = registrations.parsed(other)
    feed(registrations, gpupod("a", port=22002))
    assert [row.port for row in registrations.rows("ns")] == [22002, 22001]
    assert registrations.parsed(other) is before


def test_what_is_gone_leaves_nothing_behind():
    registrations = Registrations()
    feed(registrations, gpupod("a"), gpupod("b", namespace="other"))
    registrations.changed(("ns", "a"), None)
    assert registrations.verdict(("ns", "a")) is None
    assert registrations.rows("ns") == ()
    assert [row.name for row in registrations.rows("other")] == ["b"]


def test_after_any_history_rows_and_verdicts_are_those_of_the_whole_namespace():
    dice = random.Random(11)
    registrations, present = Registrations(), {}
    for step in range(400):
        name = f"p{dice.randrange(8)}"
        if dice.random() < 0.25:
            present.pop(name, None)
            registrations.changed(("ns", name), None)
        else:
            asks = dice.choice([None, "x", "y", "p3"])
            created = f"2026-03-01T12:00:{dice.randrange(5):02}Z"
            raw = gpupod(name, asks=asks, created=created, port=20000 + step, publish=dice.random() < 0.8)
            present[name] = raw
            feed(registrations, raw)
        whole = registration(pod_object(raw) for raw in present.values())
        assert registrations.rows("ns") == whole.rows
        for name in present:
            assert registrations.verdict(("ns", name)) == whole.verdicts[f"uid-{name}"]


def test_a_verdict_on_a_status_that_is_about_to_be_written_is_the_one_after_the_write():
    registrations = Registrations()
    before, after = gpupod("a", port=0), gpupod("a")
    before["status"].pop("endpoint")
    feed(registrations, before, gpupod("b"))
    assert not registrations.verdict(("ns", "a")).registered
    ahead = registrations.verdict(("ns", "a"), pod_object(after).status)
    assert ahead.registered
    assert not registrations.verdict(("ns", "a")).registered, "nothing is remembered of a status that is not written"
    feed(registrations, after)
    assert registrations.verdict(("ns", "a")) == ahead
