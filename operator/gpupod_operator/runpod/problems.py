"""Reads the body of a refusal: is it the API that speaks, or something in front of it?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gpupod_operator.runpod.vendor_texts import means_ban, without_prefix

# A condition's message holds a sentence, not a page.
LONGEST_DETAIL = 500
MOST_ERRORS = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """The vendor's own words. `errors` has one line per violation of a 422."""

    detail: str
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Foreign:
    """Not an answer of the API: a proxy's page or document. `banned`: Cloudflare's 1010."""

    what: str
    banned: bool = False


def read_problem(body: bytes, content_type: str) -> Problem | Foreign:
    """The problem document in a body. Served as plain `application/json` it counts as well."""
    text = body.decode("utf-8", "replace")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        kind = content_type.partition(";")[0].strip() or "no content type"
        return Foreign(f"the answer is not JSON ({kind})", means_ban(text))
    if not isinstance(document, dict):
        return Foreign("the answer is not a problem document")
    if document.get("cloudflare_error"):
        # Cloudflare answers clients that accept JSON with a problem document of its own.
        banned = document.get("error_code") == 1010 or means_ban(str(document.get("title", "")))
        return Foreign("the answer comes from Cloudflare, not from RunPod", banned)
    words = _words(document)
    if words is None:
        return Foreign("the answer is not a problem document")
    return Problem(without_prefix(words)[:LONGEST_DETAIL], _errors(document.get("errors")))


def _words(document: dict[str, Any]) -> str | None:
    for name in ("detail", "title", "error", "message"):
        value = document.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return None


def _errors(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(str(item)[:LONGEST_DETAIL] for item in value[:MOST_ERRORS])
