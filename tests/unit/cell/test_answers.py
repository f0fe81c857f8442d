from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from gpupod_cell.answers import refusal_of, scrub
from gpupod_cell.refusal import Refusal

EXCEEDED = "You have exceeded the rate limit for repository commits (128 per hour)."
COMMIT = "https://huggingface.co/api/datasets/ada/sweeps/commit/main"
TREE = "https://huggingface.co/api/datasets/ada/sweeps/tree/main"


class Answered(Exception):
    """As huggingface_hub raises them: a response, its request, and maybe a server message."""

    def __init__(self, status: int, text: str = "", url: str = COMMIT, **headers: str) -> None:
        super().__init__(text)
        plain = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response: Any = SimpleNamespace(status_code=status, text=text, headers=plain)
        self.request: Any = SimpleNamespace(url=url)


@pytest.mark.parametrize(
    ("text", "headers", "kind", "wait"),
    [
        (
            f"{EXCEEDED} You can retry this action in 43 minutes.",
            {"RateLimit": '"api";r=647;t=30'},
            "CommitQuota",
            43 * 60,
        ),
        (
            f"{EXCEEDED} You can retry this action in about 1 hour.",
            {},
            "CommitQuota",
            3600,
        ),
        (
            "You have exceeded our hourly quotas for action: commit",
            {"RateLimit": '"api";r=0;t=30'},
            "CommitQuota",
            1800,
        ),
        (
            "We had to rate limit you, you hit the quota of 1000 api requests per 5 minutes period.",
            {"RateLimit": '"api";r=0;t=55'},
            "ApiQuota",
            56,
        ),
        ("Too many requests", {"Retry_After": "68"}, "ApiQuota", 69),
        ("Too many requests", {}, "ApiQuota", 300),
        ("maximum queue size reached", {}, "QueueFull", 20),
        ("maximum time in concurrency queue reached", {}, "QueueFull", 20),
    ],
)
def test_the_three_kinds_of_429_wait_by_their_own_clock(
    text: str, headers: dict[str, str], kind: str, wait: float
) -> None:
    refusal = refusal_of(Answered(429, text, **headers))
    assert (refusal.kind, refusal.exit_code, refusal.retry_after, refusal.ambiguous) == (kind, 10, wait, False)


@pytest.mark.parametrize(
    ("error", "code", "ambiguous"),
    [
        (Answered(409, "Another commit operation is in progress for this repository."), 11, False),
        (Answered(412, "A commit has happened since. Please refresh and try again."), 11, False),
        (Answered(401, "Invalid credentials in Authorization header"), 12, False),
        (Answered(403, "You don't have the rights to create a dataset under this namespace"), 12, False),
        (Answered(403, "You have exceeded your public storage space"), 13, False),
        (Answered(403, "Private repository storage limit reached"), 13, False),
        (Answered(403, "Your storage patterns tripped our internal systems!"), 13, False),
        (Answered(404, "Repository not found"), 12, False),
        (Answered(400, "an LFS pointer pointed to a file that does not exist"), 14, False),
        (Answered(413, "payload too large"), 14, False),
        (Answered(500, "oops"), 15, True),
        (Answered(504, "gateway"), 15, True),
        (Answered(500, "oops", TREE), 16, False),
        (Answered(418, "teapot"), 16, False),
        (TimeoutError("read timed out"), 15, True),
        (FileNotFoundError("x"), 14, False),
        (ValueError("path_in_repo cannot contain .git"), 14, False),
        (ValueError("LFS batch API returned errors"), 15, True),
        (ConnectionError("xet: 429 Too Many Requests"), 10, False),
    ],
)
def test_every_answer_has_a_code_and_only_a_commit_is_ambiguous(error: Exception, code: int, ambiguous: bool) -> None:
    refusal = refusal_of(error)
    assert (refusal.exit_code, refusal.ambiguous) == (code, ambiguous)


def test_a_status_hidden_behind_another_error_is_found() -> None:
    outer = RuntimeError("Error while uploading 'x' to the Hub.")
    outer.__cause__ = Answered(403, "Private repository storage limit reached", "https://s3/put?X-Sig=abc")
    assert refusal_of(outer).kind == "StorageQuota"


def test_a_name_that_does_not_resolve_is_never_ambiguous() -> None:
    outer = OSError("connect")
    outer.__cause__ = socket.gaierror(-2, "Name or service not known")
    assert (refusal_of(outer).kind, refusal_of(outer).ambiguous) == ("Unreachable", False)


def test_a_refusal_passes_through() -> None:
    refusal = Refusal("TokenMissing", "x", 12)
    assert refusal_of(refusal) is refusal


def test_messages_hold_no_token_and_no_signed_address() -> None:
    text = "PUT https://s3.example/k?X-Amz-Signature=deadbeef with hf_abcdefghij and Bearer abc.def failed"
    shown = scrub(text)
    assert "deadbeef" not in shown
    assert "abcdefghij" not in shown
    assert "abc.def" not in shown
    assert "https://s3.example/k" in shown
