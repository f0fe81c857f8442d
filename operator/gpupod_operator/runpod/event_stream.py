"""Reads server-sent events for a bounded time: the log route never ends by itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator

import aiohttp

# Longer than any line of a container runtime; more without a line break is no event stream.
LONGEST_LINE = 256 * 1024


async def read_log(response: aiohttp.ClientResponse, *, lines: int, quiet: float, most: float) -> tuple[str, ...]:
    """Up to `lines` log lines of source `system`, oldest first.

    The past comes at once and new lines follow as they happen, so reading ends with enough lines, after `quiet`
    seconds without one, or after `most` seconds in all, whatever comes first.
    """
    found: list[str] = []
    ends = asyncio.get_running_loop().time() + most
    async with contextlib.aclosing(_events(response)) as events:
        while len(found) < lines:
            until = min(asyncio.get_running_loop().time() + quiet, ends)
            try:
                async with asyncio.timeout_at(until):
                    data = await anext(events)
            except (TimeoutError, StopAsyncIteration):
                break
            line = _system_line(data)
            if line is not None:
                found.append(line)
    return tuple(found)


async def _events(response: aiohttp.ClientResponse) -> AsyncGenerator[str, None]:
    """The data of each event; comments, ids and names are skipped."""
    data: list[str] = []
    async for line in _lines(response):
        if not line and data:
            yield "\n".join(data)
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))


async def _lines(response: aiohttp.ClientResponse) -> AsyncGenerator[str, None]:
    rest = b""
    async for chunk in response.content.iter_any():
        rest += chunk
        *whole, rest = rest.split(b"\n")
        for line in whole:
            yield line.rstrip(b"\r").decode("utf-8", "replace")
        if len(rest) > LONGEST_LINE:
            return


def _system_line(data: str) -> str | None:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or event.get("source", "system") != "system":
        return None
    line = event.get("line")
    return line if isinstance(line, str) else None
