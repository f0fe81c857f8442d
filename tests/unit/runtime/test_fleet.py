"""What outlives an object, and who is suspected on a list."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from gpupod_operator.api.gpupod_status import Attempt, AttemptIntent, GpuPodStatus
from gpupod_operator.core.provider import ProviderPod, ProviderState, Stamp
from gpupod_operator.runtime.fleet import Fleet, config_name, parse, remember, text_of
from gpupod_operator.runtime.orphans import suspects

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OLD = NOW - timedelta(minutes=6)


def pod(pod_id="p1", *, uid="u1", nonce="n1", instance="inst", created=OLD, state=ProviderState.RUNNING):
    stamp = Stamp(f"{instance}/ns/name/{uid}", nonce)
    return ProviderPod(pod_id, "name-n1", state, str(state), stamp=stamp, cost_per_hour=Decimal(2), created_at=created)


def test_what_an_object_leaves_survives_the_round_trip_through_the_config_map():
    status = GpuPodStatus(attempt=Attempt(pod_id="p1", nonce="live", retired_nonces=("n1", "n2")), released=("p1",))
    fleet = remember(Fleet(), "u1", status, NOW)
    assert parse(text_of(fleet)) == fleet
    assert fleet.released == {"p1"}
    assert set(fleet.nonces) == {"n1", "n2"}, "the nonce of a released pod is no ghost's"


def test_the_nonce_of_a_create_that_is_not_settled_is_left_too():
    """Its pod may still appear, with nobody left who knows it."""
    unanswered = Attempt(nonce="n9", intent=AttemptIntent.CREATE)
    ambiguous = Attempt(nonce="n9", unknown_since=NOW, retired_nonces=("n1",))
    assert set(remember(Fleet(), "u1", GpuPodStatus(attempt=unanswered), NOW).nonces) == {"n9"}
    assert set(remember(Fleet(), "u1", GpuPodStatus(attempt=ambiguous), NOW).nonces) == {"n1", "n9"}


def test_equal_state_is_equal_text_so_that_nothing_is_written_twice():
    one = remember(Fleet(), "u1", GpuPodStatus(released=("b", "a")), NOW)
    two = remember(Fleet(), "u1", GpuPodStatus(released=("a", "b")), NOW)
    assert text_of(one) == text_of(two)
    assert remember(one, "u1", GpuPodStatus(), NOW + timedelta(days=1)) == one


def test_a_nonce_is_kept_for_a_week():
    fleet = Fleet(nonces={"n1": ("u1", NOW)})
    assert remember(fleet, "u2", GpuPodStatus(), NOW + timedelta(days=6, hours=23)).nonces
    assert not remember(fleet, "u2", GpuPodStatus(), NOW + timedelta(days=7)).nonces


def test_account_ids_with_any_characters_make_a_valid_name():
    assert config_name("acct_A/b c") != config_name("acct_A/b d")
    assert config_name("x").removeprefix("fleet-").isalnum()


@pytest.mark.parametrize(
    ("case", "candidate", "uids", "fleet"),
    [
        ("its object exists", pod(), {"u1"}, Fleet()),
        ("another instance's", pod(instance="other"), set(), Fleet()),
        ("released", pod(), set(), Fleet(released=frozenset({"p1"}))),
        ("released, by its nonce", pod(), set(), Fleet(frozenset({"p1"}), {"n1": ("u1", NOW)})),
        ("young", pod(created=NOW - timedelta(minutes=4)), set(), Fleet()),
        ("terminated", pod(state=ProviderState.TERMINATED), set(), Fleet()),
        ("foreign", ProviderPod("p9", "x", ProviderState.RUNNING, "RUNNING", created_at=OLD), set(), Fleet()),
    ],
)
def test_nobody_else_is_suspected(case, candidate, uids, fleet):
    found = suspects((candidate,), frozenset(uids), fleet, "inst", NOW)
    assert (found.ghosts, found.orphans) == ((), ()), case


def test_an_old_pod_without_an_object_is_an_orphan_and_never_a_ghost():
    found = suspects((pod(),), frozenset(), Fleet(), "inst", NOW)
    assert [p.id for p in found.orphans] == ["p1"]
    assert not found.ghosts


def test_a_late_create_of_a_deleted_object_is_a_ghost_also_while_it_is_young():
    fleet = Fleet(nonces={"n1": ("u1", NOW)})
    found = suspects((pod(created=NOW),), frozenset(), fleet, "inst", NOW)
    assert [p.id for p in found.ghosts] == ["p1"]
    assert not suspects((pod(uid="u2", created=NOW),), frozenset(), fleet, "inst", NOW).ghosts, "the uid must agree"
