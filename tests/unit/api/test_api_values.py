"""Durations, money, times, conditions and annotations: what is read, what is written, what is refused."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gpupod_operator.api.annotations import parse_abandon
from gpupod_operator.api.base import dump
from gpupod_operator.api.conditions import Condition, ConditionStatus, find_condition, is_true, set_condition
from gpupod_operator.api.durations import format_duration, parse_duration
from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import Attempt, GpuPodStatus, HistoryEntry, PodStatus
from gpupod_operator.api.money import format_money, parse_money
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.remedies import REMEDIES
from gpupod_operator.api.supported import unsupported, unsupported_cell
from gpupod_operator.api.sweepcell import SweepCellSpec
from gpupod_operator.api.times import format_time, parse_time

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"), [("15m", 900), ("1h30m", 5400), ("24h", 86400), ("90s", 90), ("1m1h", 3660), ("0s", 0)]
)
def test_duration_is_the_sum_of_its_parts(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "15", "2 days", "1.5h", "-5m", "5m ", "1000000h", "1h1h1h1h1h1h1h1h1h", "5m\n"])
def test_duration_that_the_schema_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=20_000)))
def test_written_duration_reads_as_the_same_whole_seconds(value: timedelta) -> None:
    assert parse_duration(format_duration(value)) == timedelta(seconds=int(value.total_seconds()))


@pytest.mark.parametrize(
    ("value", "text"),
    [("2.5", "2.50"), ("7", "7.00"), ("0.00005", "0.0001"), ("0.00004", "0.00"), ("1.2345", "1.2345"), ("0", "0.00")],
)
def test_money_is_written_with_two_to_four_places(value: str, text: str) -> None:
    assert format_money(Decimal(value)) == text


@pytest.mark.parametrize("text", ["", "-1", "1e3", "$2", "2.49999", "10000000", ".5", "NaN", "1\n", "٣"])
def test_money_that_the_schema_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        parse_money(text)


@pytest.mark.parametrize("value", ["-0.01", "NaN", "Infinity", "10000000"])
def test_money_that_cannot_be_held_is_not_written(value: str) -> None:
    with pytest.raises(ValueError, match="not an amount"):
        format_money(Decimal(value))


@given(st.decimals(min_value=0, max_value=9_999_999, places=4))
def test_written_money_reads_as_the_same_amount(value: Decimal) -> None:
    assert parse_money(format_money(value)) == value


def test_money_as_a_float_is_refused() -> None:
    with pytest.raises(ValidationError, match="never a float"):
        GpuPodSpec.model_validate({"spend": {"maxPricePerHour": 2.5}})


def test_times_are_written_in_utc_with_z() -> None:
    berlin = timezone(timedelta(hours=1))
    assert format_time(datetime(2026, 11, 30, 13, tzinfo=berlin)) == "2026-11-30T12:00:00Z"
    assert format_time(NOON.replace(microsecond=5)) == "2026-11-30T12:00:00.000005Z"
    assert parse_time("2026-11-30T13:00:00.123456789+01:00") == NOON.replace(microsecond=123456)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        parse_time("2026-11-30T13:00:00")
    with pytest.raises(ValueError, match="without a zone"):
        format_time(NOON.replace(tzinfo=None))


def _set(before: tuple[Condition, ...], status: str, now: datetime, reason: str = "X") -> tuple[Condition, ...]:
    return set_condition(before, "Ready", status, reason, "why", 3, now)


def test_transition_time_moves_only_when_the_status_flips() -> None:
    first = _set((), "False", NOON)
    same = _set(first, "False", NOON + timedelta(hours=1), reason="Other")
    flipped = _set(same, "True", NOON + timedelta(hours=2))
    assert [c[0].last_transition_time for c in (first, same, flipped)] == [NOON, NOON, NOON + timedelta(hours=2)]
    assert (same[0].reason, flipped[0].status) == ("Other", ConditionStatus.TRUE)


def test_a_condition_keeps_its_place_and_leaves_the_others_alone() -> None:
    both = set_condition(_set((), "True", NOON), "Stalled", "False", "X", "", 3, NOON)
    again = _set(both, "Unknown", NOON)
    assert [c.type for c in again] == ["Ready", "Stalled"]
    assert find_condition(again, "Stalled") == both[1]


def test_unknown_and_absent_are_not_true() -> None:
    conditions = _set((), "Unknown", NOON)
    assert not is_true(conditions, "Ready")
    assert not is_true(conditions, "Stalled")
    assert is_true(_set((), "True", NOON), "Ready")


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("abc123: ran on the wrong commit", ("abc123", "ran on the wrong commit")),
        ("abc123:because: of this", ("abc123", "because: of this")),
        ("abc123", None),
        ("abc123: ", None),
        (": reason", None),
        ("", None),
    ],
)
def test_abandoning_needs_a_pod_id_and_a_reason(value: str, meaning: tuple[str, str] | None) -> None:
    assert parse_abandon(value) == meaning


def test_every_reason_says_what_to_do_and_is_a_valid_condition_reason() -> None:
    assert set(REMEDIES) == set(Reason)
    for reason, remedy in REMEDIES.items():
        assert reason.value.isalnum(), reason
        assert reason.value[0].isupper(), reason
        assert remedy.endswith("."), reason


def test_fields_that_a_newer_version_wrote_are_ignored() -> None:
    status = GpuPodStatus.model_validate({"phase": "Ready", "novelty": {"a": 1}, "pod": {"id": "x", "novelty": 2}})
    assert dump(status)["pod"] == {"id": "x"}


def test_an_unknown_intent_is_refused_and_never_read_as_none() -> None:
    with pytest.raises(ValidationError):
        Attempt.model_validate({"intent": "Explode"})


def test_status_keeps_the_newest_when_it_is_full_and_cuts_long_words_of_the_vendor() -> None:
    nonces = tuple(f"n{n}" for n in range(12))
    history = tuple(HistoryEntry(attempt=f"a{n}") for n in range(25))
    written = dump(
        GpuPodStatus(attempt=Attempt(retired_nonces=nonces), history=history, pod=PodStatus(name="x" * 10_000))
    )
    assert written["attempt"]["retiredNonces"] == [f"n{n}" for n in range(2, 12)]
    assert [entry["attempt"] for entry in written["history"]] == [f"a{n}" for n in range(5, 25)]
    assert len(written["pod"]["name"]) == 4096


def test_defaults_are_supported_and_restricting_fields_are_named() -> None:
    assert unsupported(GpuPodSpec()) == ()
    limited = GpuPodSpec.model_validate({"workload": {"stallAfter": "2h"}, "health": {"resumes": 1}})
    assert {(f.path, f.restricting) for f in unsupported(limited)} == {
        ("spec.workload.stallAfter", False),
        ("spec.health.resumes", False),
    }


def test_an_unsupported_cell_is_named() -> None:
    least = {
        "podRef": {"name": "sweep"},
        "sweep": "s",
        "source": {"doneFile": "/d", "artifacts": [{"name": "a", "path": "/a", "files": ["f"]}]},
        "destination": {"repo": "o/n", "path": "p", "tokenSecretRef": {"name": "n", "key": "k"}},
    }
    assert unsupported_cell(SweepCellSpec.model_validate(least)) == ()
    by_operator = SweepCellSpec.model_validate(least | {"upload": {"mode": "Operator"}})
    assert [(f.path, f.restricting) for f in unsupported_cell(by_operator)] == [("spec.upload.mode", True)]
