from __future__ import annotations

import pytest

from gpupod_cell.refusal import AMBIGUOUS, AUTH, BAD_INPUT, CONFLICT, QUOTA, STORAGE_QUOTA, TRANSPORT
from gpupod_cell.schedule import CELL_WIDE, HUB_WIDE, LONGEST_WAIT, REPO_WIDE, reach_of, state_after, wait_after


@pytest.mark.parametrize("code", [AMBIGUOUS, TRANSPORT])
def test_passing_faults_back_off_to_an_hour_and_no_further(code: int) -> None:
    waits = [wait_after(code, None, failures, 0.5) for failures in range(1, 30)]
    assert waits[0] == 15
    assert waits == sorted(waits)
    assert max(waits) == LONGEST_WAIT
    # Commits that are dropped each time must stay a small part of a repository's 128 an hour.
    assert sum(1 for total in _sums(waits) if total <= 3600) <= 8


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
def test_a_quota_is_never_asked_again_before_its_time(jitter: float) -> None:
    assert wait_after(QUOTA, 2580, 1, jitter) >= 2580


@pytest.mark.parametrize("jitter", [0.0, 0.999])
def test_conflicts_are_tried_again_within_seconds_then_minutes(jitter: float) -> None:
    assert 1 <= wait_after(CONFLICT, 10, 1, jitter) <= 15
    assert wait_after(CONFLICT, 10, 50, jitter) <= 450


@pytest.mark.parametrize(
    ("code", "wait", "failures", "state"),
    [
        (AUTH, 3600, 1, "Blocked"),
        (STORAGE_QUOTA, 3600, 1, "Blocked"),
        (BAD_INPUT, 60, 1, "Blocked"),
        (QUOTA, 2580, 1, "Blocked"),
        (QUOTA, 20, 1, "Produced"),
        (CONFLICT, 10, 1, "Produced"),
        (TRANSPORT, 15, 2, "Produced"),
        (TRANSPORT, 60, 3, "Failed"),
        (AMBIGUOUS, 60, 3, "Failed"),
    ],
)
def test_blocked_is_what_needs_a_person_or_a_long_wait(code: int, wait: float, failures: int, state: str) -> None:
    assert state_after(code, wait, failures) == state


def test_a_quota_concerns_more_than_the_cell_that_met_it() -> None:
    assert reach_of(QUOTA, "CommitQuota") == REPO_WIDE
    assert reach_of(QUOTA, "QueueFull") == REPO_WIDE
    assert reach_of(QUOTA, "ApiQuota") == HUB_WIDE
    assert reach_of(TRANSPORT, "Http500") == CELL_WIDE


def _sums(waits: list[float]) -> list[float]:
    total, sums = 0.0, []
    for wait in waits:
        total += wait
        sums.append(total)
    return sums
