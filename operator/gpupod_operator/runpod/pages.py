"""Follows cursors to the end, or to an error: half a list read as a whole one makes leaks and duplicates."""

from __future__ import annotations

from typing import Any

from gpupod_operator.core.provider import Failure
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.calls import Call
from gpupod_operator.runpod.errors import IncompleteAnswer
from gpupod_operator.runpod.requests import Reply, RunPodRequests

# 100 pages of 1000 pods: beyond any account, and the end of a cursor that goes in circles.
MOST_PAGES = 100
# Ends of a page that say something about us or the API as a whole. Anything else is "this list is not known".
_TELLING = frozenset({Failure.API_GONE, Failure.THROTTLED, Failure.UNAUTHORIZED, Failure.FORBIDDEN})


async def read_pages(
    requests: RunPodRequests, call: Call, path: str, key: str, *, limit: int | None = None
) -> list[Any]:
    """Every item under `key`, from all pages. An answer without a pagination block (the August contract) is whole.

    Raises:
        IncompleteAnswer: an empty, missing or repeated cursor, more than 100 pages, or no list under `key`.
        ProviderError: a page was not answered.
    """
    items: list[Any] = []
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        query = {} if limit is None else {"limit": str(limit)}
        if cursor is not None:
            query["cursor"] = cursor
        reply = await _page(requests, call, path, query)
        page = reply.document.get(key)
        if not isinstance(page, list):
            raise _incomplete(reply, f"the answer has no list of {key}")
        items += page
        cursor = _next(reply)
        if cursor is None:
            return items
        if cursor in seen:
            raise _incomplete(reply, "a page repeats a cursor")
        seen.add(cursor)
        if len(seen) >= MOST_PAGES:
            raise _incomplete(reply, f"the list does not end after {MOST_PAGES} pages")


async def _page(requests: RunPodRequests, call: Call, path: str, query: dict[str, str]) -> Reply:
    try:
        return await requests.send(call, path, query=query)
    except ProviderError as error:
        if error.failure in _TELLING or error.failure is Failure.UNAVAILABLE:
            raise
        # A list route that is not found is no empty list.
        raise IncompleteAnswer(error.detail, request_id=error.request_id) from None


def _next(reply: Reply) -> str | None:
    block = reply.document.get("pagination")
    if block is None:
        return None
    if not isinstance(block, dict) or not isinstance(block.get("hasNextPage"), bool):
        raise _incomplete(reply, "the pagination block cannot be read")
    if not block["hasNextPage"]:
        return None
    cursor = block.get("nextCursor")
    if not isinstance(cursor, str) or not cursor:
        raise _incomplete(reply, "a page announces a next one and gives no cursor")
    return cursor


def _incomplete(reply: Reply, what: str) -> IncompleteAnswer:
    return IncompleteAnswer(what, request_id=reply.headers.get("x-request-id"))
