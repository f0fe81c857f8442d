"""The Hub's limits. Numbers are what its documentation and its error texts name; all can be set per run."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from gpupod_rehearsal.hub import refusals

MEBIBYTE = 1024 * 1024
HOUR = timedelta(hours=1)

RateClass = Literal["api", "resolvers"]


@dataclass(frozen=True)
class HubLimits:
    """Every limit the simulated Hub enforces; sizes in bytes, windows in seconds.

    Sources: 128 commits per hour from the error text seen most; request quotas of a free account and of the anonymous
    from the Hub's rate-limit page; 10 000 files per directory and 100 000 per repository from refusal texts; pages of
    1000 (50 expanded), 1000 paths and 256 preuploads from the client's source.
    """

    commits_per_hour: int = 128
    refused_commits_count: bool = True
    api_requests: int = 1000
    resolver_requests: int = 5000
    anonymous_api_requests: int = 500
    anonymous_resolver_requests: int = 3000
    window_seconds: int = 300
    files_per_directory: int = 10_000
    files_per_repository: int = 100_000
    regular_file_bytes: int = 10 * MEBIBYTE
    multipart_bytes: int = 5 * 1024 * MEBIBYTE
    multipart_chunk_bytes: int = 64 * MEBIBYTE
    tree_page: int = 1000
    expanded_tree_page: int = 50
    commits_page: int = 50
    paths_per_request: int = 1000
    preuploads_per_request: int = 256
    private_storage_bytes: int | None = None
    public_storage_bytes: int | None = None

    def requests(self, rate_class: RateClass, *, anonymous: bool) -> int:
        """Requests allowed per window."""
        if rate_class == "api":
            return self.anonymous_api_requests if anonymous else self.api_requests
        return self.anonymous_resolver_requests if anonymous else self.resolver_requests


@dataclass
class _Window:
    started: datetime
    used: int = 0


class RequestQuota:
    """Requests per fixed window, user and class, with the `RateLimit` headers the Hub puts on every response."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, RateClass], _Window] = {}

    def spend(self, user: str | None, rate_class: RateClass, now: datetime, limits: HubLimits) -> dict[str, str]:
        """Count one request and return its headers.

        Raises:
            HubRefusedError: 429, the window is used up; it carries the headers with `r=0`.
        """
        length = timedelta(seconds=limits.window_seconds)
        window = self._windows.get((user or "", rate_class))
        if window is None or now >= window.started + length:
            window = self._windows[(user or "", rate_class)] = _Window(started=now)
        limit = limits.requests(rate_class, anonymous=user is None)
        reset = max(1, round((window.started + length - now).total_seconds()))
        if window.used >= limit:
            refusal = refusals.api_quota(limit, limits.window_seconds)
            refusal.headers.update(rate_headers(rate_class, 0, reset, limit, limits.window_seconds))
            raise refusal
        window.used += 1
        return rate_headers(rate_class, limit - window.used, reset, limit, limits.window_seconds)


class CommitQuota:
    """Commits per repository in a sliding hour."""

    def __init__(self) -> None:
        self._attempts: dict[str, deque[datetime]] = {}

    def check(self, repository: str, now: datetime, limits: HubLimits) -> None:
        """Raise the Hub's 429 when the hour is used up."""
        recent = self._recent(repository, now)
        if len(recent) >= limits.commits_per_hour:
            wait = (recent[len(recent) - limits.commits_per_hour] + HOUR - now).total_seconds()
            raise refusals.commit_quota(limits.commits_per_hour, wait)

    def count(self, repository: str, now: datetime) -> None:
        self._recent(repository, now).append(now)

    def _recent(self, repository: str, now: datetime) -> deque[datetime]:
        attempts = self._attempts.setdefault(repository, deque())
        while attempts and attempts[0] <= now - HOUR:
            attempts.popleft()
        return attempts


def rate_headers(rate_class: str, remaining: int, reset_seconds: int, limit: int, window: int) -> dict[str, str]:
    """`RateLimit` and `RateLimit-Policy` in the form of IETF draft 9, as the Hub sends them."""
    return {
        "RateLimit": f'"{rate_class}";r={remaining};t={reset_seconds}',
        "RateLimit-Policy": f'"fixed window";"{rate_class}";q={limit};w={window}',
    }
