"""Reads `RateLimit`, `RateLimit-Policy` and `Retry-After`.

RateLimit: "minute";r=176;t=1, "hour";r=7193       left in the window, seconds until it begins anew
RateLimit-Policy: "minute";q=60;w=60               calls per window, its length in seconds
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# The longest documented window is a day; a larger number is a broken header and must not silence us for a week.
LONGEST_WAIT = 86_400.0
# When a 429 says nothing at all: a sixth of the shortest documented window.
DEFAULT_WAIT = 10.0

_ITEM = re.compile(r'\s*(?:"(?P<quoted>[^"]*)"|(?P<bare>[^;,"\s]+))(?P<rest>(?:\s*;\s*[a-zA-Z]+\s*=\s*[^;,]*)*)')
_PARAMETER = re.compile(r";\s*(?P<key>[a-zA-Z]+)\s*=\s*(?P<value>\d+)")


@dataclass(frozen=True, slots=True)
class WindowNotice:
    """What one answer says of one window. None where it does not say."""

    left: int | None = None
    resets_in: float | None = None
    quota: int | None = None
    length: float | None = None


def read_windows(headers: Mapping[str, str]) -> dict[str, WindowNotice]:
    """The windows named in the headers of an answer; empty without the headers, which means "not limited"."""
    now, policy = _items(headers.get("RateLimit", "")), _items(headers.get("RateLimit-Policy", ""))
    return {
        name: WindowNotice(
            left=now.get(name, {}).get("r"),
            resets_in=_seconds(now.get(name, {}).get("t")),
            quota=policy.get(name, {}).get("q"),
            length=_seconds(policy.get(name, {}).get("w")),
        )
        for name in {**policy, **now}
    }


def wait_after_refusal(headers: Mapping[str, str]) -> float:
    """Seconds to wait after a 429. `Retry-After` covers only the window that refused: the longest spent one counts."""
    waits = [
        notice.resets_in if notice.resets_in is not None else notice.length
        for notice in read_windows(headers).values()
        if notice.left == 0
    ]
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal():
        waits.append(_seconds(int(text)))
    return max((wait for wait in waits if wait is not None), default=DEFAULT_WAIT)


def _items(header: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for item in _ITEM.finditer(header):
        name = item["quoted"] if item["quoted"] is not None else item["bare"]
        found[name] = {p["key"].lower(): int(p["value"]) for p in _PARAMETER.finditer(item["rest"])}
    return found


def _seconds(value: int | None) -> float | None:
    return None if value is None else min(float(value), LONGEST_WAIT)
