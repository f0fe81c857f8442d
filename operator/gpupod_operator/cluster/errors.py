"""From an HTTP answer of the API server to one of the typed errors of `ports`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable

MESSAGE_LIMIT = 500
"""Characters of the server's own text that are kept; a 422 can list a hundred fields."""


class NotLeader(ApiUnavailable):
    """The Lease is not held (any more): nothing was sent."""


def error_of(status: int, body: bytes, what: str, *, secret: bool) -> Exception:
    """The error for an answer that is not 2xx.

    `what` is method and path. With `secret` the server's message is left out, because it may quote the value sent.
    """
    answer = _status_of(body)
    reason = str(answer.get("reason") or "")
    text = "" if secret else str(answer.get("message") or "")[:MESSAGE_LIMIT]
    message = f"{what}: {status} {reason}".rstrip() + (f": {text}" if text else "")
    if status == 404 and answer.get("kind") == "Status" and reason == "NotFound":
        return ApiNotFound(message)
    if status == 404:
        # a proxy's page, or an API group that is not served now: nothing is known about the object
        return ApiUnavailable(message)
    if status == 409:
        return ApiConflict(message)
    if status == 403:
        return ApiForbidden(f"{message} (the namespace is terminating)" if _terminating(answer) else message)
    if status == 429 or status >= 500 or status in {401, 408, 410}:
        return ApiUnavailable(message)
    if 400 <= status < 500:
        return ApiInvalid(message)
    # a redirect or an informational status: something else than an API server answered
    return ApiUnavailable(message)


def _status_of(body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, Mapping) else {}


def _terminating(answer: Mapping[str, Any]) -> bool:
    causes = (answer.get("details") or {}).get("causes") or []
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
