"""What one more list means: by table."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.provider import Failure, Inventory, InventoryState, ProviderPod, ProviderState, Stamp
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.errors import IncompleteAnswer
from gpupod_operator.runpod.inventory import (
    ABSENCES_REMEMBERED,
    ABSENCES_TOLD,
    absorb,
    doubt,
    doubted,
    failed,
    unlisted,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NONE: frozenset[str] = frozenset()


def pod(pod_id: str, *, uid: str | None = None, state: ProviderState = ProviderState.RUNNING) -> ProviderPod:
    stamp = Stamp(f"inst/ns/name/{uid}", "n") if uid is not None else None
    return ProviderPod(pod_id, pod_id, state, state.value, stamp=stamp)


def pods(names: str) -> tuple[ProviderPod, ...]:
    return tuple(pod(name) for name in names)


def after(*lists: str, tracked: str = "") -> Inventory:
    inventory = unlisted(NOW)
    for names in lists:
        inventory, _ = absorb(inventory, pods(names), frozenset(tracked), NOW)
    return inventory


@pytest.mark.parametrize(
    ("known", "listed", "tracked", "expected", "lost"),
    [
        ("", "", "", "", None),
        ("", "abc", "", "", None),
        ("abc", "abc", "", "", None),
        ("a", "", "", "", "a"),
        ("abcdef", "", "", "", "abcdef"),
        ("abc", "ab", "", "", None),  # a third is not more than a third
        ("abcd", "ab", "", "", "cd"),
        ("ab", "a", "", "", "b"),
        ("ab", "ax", "", "", "b"),
        ("abcdef", "abcd", "", "", None),
        ("abcdef", "abc", "", "", "def"),
        ("a", "", "", "a", None),  # its end was ordered
        ("abcd", "ab", "", "cd", None),
        ("abcd", "a", "", "d", "bc"),
        ("", "", "a", "", "a"),  # a status names it: an empty list after a restart
        ("", "abc", "ad", "", "d"),
        ("", "abc", "abcd", "", None),
        ("ab", "", "c", "", "abc"),  # what we saw ourselves is the better witness
    ],
)
def test_when_a_list_is_not_believed_as_it_stands(
    known: str, listed: str, tracked: str, expected: str, lost: str | None
):
    previous = after(known) if known else unlisted(NOW)
    found = doubt(previous, pods(listed), frozenset(tracked), frozenset(expected))
    assert (None if found is None else "".join(found.lost)) == lost


def test_a_loss_that_was_accepted_once_is_not_doubted_again():
    inventory = after("ab", "", tracked="ab")
    assert doubt(inventory, (), frozenset("ab"), NONE) is None


def test_a_pod_shown_as_terminated_is_no_part_of_what_we_know():
    inventory, _ = absorb(unlisted(NOW), [pod("a", state=ProviderState.TERMINATED)], NONE, NOW)
    assert doubt(inventory, (), NONE, NONE) is None


def test_a_stopped_pod_is_part_of_what_we_know():
    inventory, _ = absorb(unlisted(NOW), [pod("a", state=ProviderState.EXITED)], NONE, NOW)
    assert doubt(inventory, (), NONE, NONE) is not None


def test_absences_are_counted_in_a_row_and_begin_anew_when_the_pod_is_seen():
    assert after("ab", "a").absent == {"b": 1}
    assert after("ab", "a", "a").absent == {"b": 2}
    assert after("ab", "a", "ab", "a").absent == {"b": 1}
    assert after("ab", "a", "ab").absent == {}


def test_a_tracked_id_that_no_list_ever_showed_is_counted():
    assert after("a", "a", tracked="z").absent == {"z": 2}
    assert after("a", "a").absent == {}


def test_a_failed_or_doubted_answer_counts_no_absence_and_keeps_the_pods():
    inventory = after("ab", "a")
    for told, _ in (
        failed(inventory, ProviderError(Failure.UNAVAILABLE, "502: x", request_id="r1"), NOW),
        doubted(inventory, "the list lacks pods", NOW),
    ):
        assert (told.absent, set(told.pods), told.sequence) == ({"b": 1}, {"a"}, 2)
        assert not told.fresh
        assert told.complete_at == NOW


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ProviderError(Failure.UNAUTHORIZED, "x"), Reason.UNAUTHORIZED),
        (ProviderError(Failure.FORBIDDEN, "x"), Reason.FORBIDDEN),
        (ProviderError(Failure.API_GONE, "x"), Reason.PROVIDER_API_GONE),
        (ProviderError(Failure.THROTTLED, "x"), Reason.THROTTLED),
        (ProviderError(Failure.UNAVAILABLE, "x"), Reason.PROVIDER_UNAVAILABLE),
        (IncompleteAnswer("x"), Reason.OBSERVATION_FAILED),
    ],
)
def test_why_nothing_is_known_has_a_reason_that_users_can_read(error: ProviderError, reason: Reason):
    told, change = failed(after("a"), error, NOW)
    assert told.state is InventoryState.UNKNOWN
    assert Reason(told.reason) is reason
    assert change.everything


def test_the_same_trouble_twice_is_the_same_message_and_wakes_nobody():
    first, _ = failed(after("a"), ProviderError(Failure.UNAVAILABLE, "502: x", request_id="r1"), NOW)
    second, change = failed(first, ProviderError(Failure.UNAVAILABLE, "502: x", request_id="r2"), NOW)
    assert second.message == first.message
    assert not change.everything
    assert not change.names


def test_a_flip_of_the_state_concerns_everybody():
    known, change = absorb(unlisted(NOW), pods("a"), NONE, NOW)
    assert change.everything
    unknown, change = failed(known, ProviderError(Failure.UNAVAILABLE, "x"), NOW)
    assert change.everything
    suspect, change = doubted(unknown, "x", NOW)
    assert change.everything
    _, change = absorb(suspect, pods("a"), NONE, NOW)
    assert change.everything


def test_a_change_names_the_pods_and_the_uids_of_their_stamps():
    before, _ = absorb(unlisted(NOW), [pod("a", uid="u1"), pod("b", uid="u2"), pod("c", uid="u3")], NONE, NOW)
    stopped = pod("b", uid="u2", state=ProviderState.EXITED)
    _, change = absorb(before, [pod("a", uid="u1"), stopped, pod("d", uid="u4")], NONE, NOW)
    assert change.names == {"b", "u2", "c", "u3", "d", "u4"}
    assert not change.everything


def test_nothing_new_concerns_nobody():
    inventory = after("ab")
    _, change = absorb(inventory, pods("ab"), NONE, NOW)
    assert not change.names
    assert not change.everything


def test_an_absence_is_told_as_long_as_a_proof_may_need_it():
    inventory = after("ab")
    told = []
    for _ in range(ABSENCES_TOLD + 3):
        inventory, change = absorb(inventory, pods("a"), frozenset("b"), NOW)
        told.append("b" in change.names)
    assert told == [True] * ABSENCES_TOLD + [False] * 3


def test_an_id_that_nobody_asks_about_is_forgotten_in_the_end_and_a_tracked_one_is_not():
    inventory = after("abc")
    for _ in range(ABSENCES_REMEMBERED):
        inventory, _ = absorb(inventory, pods("a"), frozenset("b"), NOW)
    assert set(inventory.absent) == {"b", "c"}
    inventory, _ = absorb(inventory, pods("a"), frozenset("b"), NOW)
    assert set(inventory.absent) == {"b"}
    assert inventory.seen == {"a", "b"}
    assert inventory.absent["b"] == ABSENCES_REMEMBERED + 1
