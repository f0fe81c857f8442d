"""What an answer of the Hub that is not 200 means. Decided by status first: the client library's classes mislead."""

from __future__ import annotations

import json
from collections.abc import Mapping

from gpupod_operator.hub.throttling import throttling
from gpupod_operator.ports import (
    HubError,
    HubForbidden,
    HubRateLimited,
    HubRepoNotFound,
    HubUnauthorized,
    HubUnavailable,
)

LONGEST_QUOTE = 300


class EntryMissing(Exception):  # a fact about the repository, not a failure
    """The repository and revision are there and hold no such path: the one 404 that proves an absence."""


def refusal(status: int, headers: Mapping[str, str], body: str, where: str, token: str | None) -> Exception:
    """The typed error of an answer; `where` names the request without its query.

    Only a 404 with the Hub's own `X-Error-Code` says that something is missing. A bare 404 may come from a proxy.
    """
    said = quote_server(headers, body, token)
    message = f"{where}: {status} {said}".rstrip()
    if request_id := headers.get("X-Request-Id"):
        message += f" (request {request_id})"
    code = headers.get("X-Error-Code", "")
    if status == 404 and code == "EntryNotFound":
        return EntryMissing(message)
    return _typed(status, code, headers, body, message, anonymous=token is None)


def quote_server(headers: Mapping[str, str], body: str, token: str | None) -> str:
    """The server's own words on one line, cut to 300 characters, with the token blanked should it repeat it."""
    text = headers.get("X-Error-Message", "") or _error_of(body)
    if token:
        text = text.replace(token, "[token]")
    return " ".join(text.split())[:LONGEST_QUOTE]


def _typed(status: int, code: str, headers: Mapping[str, str], body: str, message: str, *, anonymous: bool) -> HubError:
    if status == 401:
        return HubUnauthorized(message + ("; no token was sent" if anonymous else ""))
    if status == 403:
        return HubForbidden(message)
    if status == 404 and code in ("RepoNotFound", "RevisionNotFound"):
        return HubRepoNotFound(message)
    if status == 429:
        kind, wait = throttling(headers, f"{headers.get('X-Error-Message', '')} {body}")
        return HubRateLimited(message, kind, wait)
    return HubUnavailable(message)


def _error_of(body: str) -> str:
    try:
        parsed = json.loads(body)
    except ValueError:
        # A page of HTML says nothing that fits into a condition.
        return "" if body.lstrip().startswith("<") else body
    if isinstance(parsed, dict) and isinstance(parsed.get("error"), str):
        return str(parsed["error"])
    return ""
