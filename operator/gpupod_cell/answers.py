"""What the Hub's refusals mean. Classified by status and text, never by exception class alone.

The same status has several meanings (three kinds of 429, two of 403), the class of a 401 depends on the URL, and LFS
and Xet failures arrive as plain RuntimeError, ValueError or ConnectionError. Texts: as the Hub sends them in 2025-26.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpupod_cell.refusal import (
    AMBIGUOUS,
    AUTH,
    BAD_INPUT,
    CONFLICT,
    HOUR,
    QUOTA,
    STORAGE_QUOTA,
    TRANSPORT,
    Refusal,
)

COMMIT_QUOTA = ("rate limit for repository commits", "hourly quotas for action: commit")
QUEUE = ("maximum queue size reached", "maximum time in concurrency queue reached")
STORAGE = ("exceeded your public storage space", "storage limit reached", "storage patterns tripped")

QUEUE_WAIT = 20.0
API_WAIT = 300.0
"""The Hub's request window, seconds; for a 429 that does not say when it ends."""
COMMIT_WAIT = 1800.0
"""Half of the quota's hour, for the older text that names no time."""
PERSISTENT_WAIT = HOUR

_UNITS = {"second": 1.0, "minute": 60.0, "hour": HOUR, "day": 24 * HOUR}
_WAIT = re.compile(r"retry this action in (?:about )?(\d+|an?) (second|minute|hour|day)", re.IGNORECASE)
_WINDOW = re.compile(r'"(?P<name>\w+)";\s*r=(?P<left>\d+);\s*t=(?P<reset>\d+)')
_SECRET = re.compile(r"\b(hf_|rpa_|api_org_)[A-Za-z0-9]{6,}|(?i:bearer)\s+\S+")
_QUERY = re.compile(r"(https?://[^\s?]+)\?\S+")


def refusal_of(error: BaseException) -> Refusal:
    """The refusal an exception of the Hub client stands for. A Refusal is passed through."""
    for link in _chain(error):
        if isinstance(link, Refusal):
            return link
        response = getattr(link, "response", None)
        if response is not None and hasattr(response, "status_code"):
            return _by_status(int(response.status_code), _text(link, response), response.headers, _committing(link))
    return _without_answer(error)


def scrub(text: str) -> str:
    """The text without anything that looks like a token or a signed URL's query, at most 500 characters."""
    return _QUERY.sub(r"\1", _SECRET.sub("(removed)", text)).strip()[:500]


def _by_status(status: int, text: str, headers: Mapping[str, str], committing: bool) -> Refusal:
    low, said = text.lower(), f"HTTP {status}: {scrub(text)}"
    if status == 429:
        return _rate_limited(low, said, headers)
    if status == 409:
        return Refusal("CommitInProgress", said, CONFLICT, retry_after=10)
    if status == 412:
        return Refusal("HeadMoved", said, CONFLICT, retry_after=5)
    if status == 401:
        return Refusal("Unauthorized", f"{said}; check the token of this cell", AUTH, retry_after=PERSISTENT_WAIT)
    if status == 403:
        if any(known in low for known in STORAGE):
            return Refusal("StorageQuota", f"{said}; free or buy space", STORAGE_QUOTA, retry_after=PERSISTENT_WAIT)
        return Refusal("Forbidden", f"{said}; the token needs write access", AUTH, retry_after=PERSISTENT_WAIT)
    if status == 404:
        text = f"{said}; the repository or revision does not exist, or the token may not see it"
        return Refusal("RepoNotFound", text, AUTH, retry_after=PERSISTENT_WAIT)
    if status in (400, 413, 422):
        return Refusal("RefusedByHub", said, BAD_INPUT, retry_after=PERSISTENT_WAIT)
    if status == 408 or status >= 500:
        return _unclear(f"Http{status}", said, committing)
    return Refusal(f"Http{status}", said, TRANSPORT)


def _rate_limited(low: str, said: str, headers: Mapping[str, str]) -> Refusal:
    # On a commit quota the RateLimit header is healthy and misleading, so the text comes first.
    if any(known in low for known in COMMIT_QUOTA) or _WAIT.search(low):
        return Refusal("CommitQuota", said, QUOTA, retry_after=_wait_in(low) or COMMIT_WAIT)
    if any(known in low for known in QUEUE):
        return Refusal("QueueFull", said, QUOTA, retry_after=QUEUE_WAIT)
    for window in _WINDOW.finditer(headers.get("RateLimit", "")):
        if window["left"] == "0":
            return Refusal("ApiQuota", said, QUOTA, retry_after=float(window["reset"]) + 1)
    plain = headers.get("Retry-After", "")
    return Refusal("ApiQuota", said, QUOTA, retry_after=float(plain) + 1 if plain.isdigit() else API_WAIT)


def _without_answer(error: BaseException) -> Refusal:
    texts = [f"{type(link).__name__}: {link}" for link in _chain(error)]
    said, low = scrub(" <- ".join(texts)), " ".join(texts).lower()
    if "429" in low or any(known in low for known in (*COMMIT_QUOTA, *QUEUE)):
        return Refusal("ApiQuota", said, QUOTA, retry_after=API_WAIT)
    if any(known in low for known in STORAGE):
        return Refusal("StorageQuota", said, STORAGE_QUOTA, retry_after=PERSISTENT_WAIT)
    if isinstance(error, FileNotFoundError):
        return Refusal("ChangedWhileReading", said, BAD_INPUT, retry_after=30)
    never_sent = any(type(link).__name__ in ("ConnectError", "ConnectTimeout", "gaierror") for link in _chain(error))
    if isinstance(error, ValueError) and "json" not in type(error).__name__.lower() and "lfs batch" not in low:
        return Refusal("RefusedByClient", said, BAD_INPUT, retry_after=PERSISTENT_WAIT)
    return _unclear("Unreachable" if never_sent else "Transport", said, not never_sent)


def _unclear(kind: str, said: str, committing: bool) -> Refusal:
    if committing:
        return Refusal(kind, said, AMBIGUOUS, ambiguous=True)
    return Refusal(kind, said, TRANSPORT)


def _committing(error: BaseException) -> bool:
    """Whether the request was the commit itself: only then may it have landed in spite of the answer."""
    try:
        return "/commit/" in str(error.request.url)  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):
        return True


def _wait_in(text: str) -> float | None:
    found = _WAIT.search(text)
    if found is None:
        return None
    count = 1.0 if found[1].lower() in ("a", "an") else float(found[1])
    return count * _UNITS[found[2].lower()]


def _text(error: BaseException, response: Any) -> str:
    said = getattr(error, "server_message", None)
    try:
        body = response.text
    except (RuntimeError, UnicodeDecodeError):
        # A streamed answer that was not read to its end has no text.
        body = ""
    return f"{said}" if said else body or str(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__
