"""When a refused cell is tried again. Pure."""

from __future__ import annotations

from gpupod_cell.refusal import AMBIGUOUS, AUTH, BAD_INPUT, CONFLICT, QUOTA, STORAGE_QUOTA, TRANSPORT

FIRST_WAIT = 15.0
LONGEST_WAIT = 3600.0
SHORT_WAIT = 60.0
PATIENCE = 3
"""Refusals in a row after which a passing fault is called Failed; it is tried on all the same."""

CELL_WIDE, REPO_WIDE, HUB_WIDE = "cell", "repo", "hub"


def wait_after(exit_code: int, retry_after: float | None, failures: int, jitter: float) -> float:
    """Seconds until the next try. `failures` counts from 1; `jitter` in [0, 1) spreads agents refused at once.

    Doubling from 15 s to an hour for what passes by itself, so that a commit that is dropped each time costs few of
    the repository's 128 an hour.
    """
    if exit_code == CONFLICT:
        return min((retry_after or FIRST_WAIT) * float(2 ** min(failures - 1, 4)), 300) * (0.5 + jitter)
    if exit_code in (AMBIGUOUS, TRANSPORT) or retry_after is None:
        return min(FIRST_WAIT * float(2 ** min(failures - 1, 10)), LONGEST_WAIT) * (0.75 + jitter / 2)
    return retry_after * (1 + jitter / 20) + jitter


def state_after(exit_code: int, wait: float, failures: int) -> str:
    """Blocked when only a person or a long wait helps; Produced while it is retried soon; Failed when that drags on."""
    if exit_code in (AUTH, STORAGE_QUOTA, BAD_INPUT) or (exit_code == QUOTA and wait > SHORT_WAIT):
        return "Blocked"
    return "Produced" if failures < PATIENCE else "Failed"


def reach_of(exit_code: int, kind: str) -> str:
    """Whom the refusal concerns besides the cell: a quota is shared, and asking again for others makes it worse."""
    if exit_code != QUOTA:
        return CELL_WIDE
    return HUB_WIDE if kind == "ApiQuota" else REPO_WIDE
