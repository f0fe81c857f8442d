"""Durations as users write them: `15m`, `1h30m`, `24h`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer

PATTERN: Final = r"^([0-9]{1,6}(s|m|h))+$"
"""Also the schema's pattern. Six digits a part: the API server's own `duration()` overflows at 292 years."""
MAX_LENGTH: Final = 16

_WHOLE = re.compile(PATTERN)
_PART = re.compile(r"([0-9]+)(s|m|h)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


def parse_duration(text: str) -> timedelta:
    """The sum of the parts, in whole seconds. Raises ValueError for anything that the schema would refuse."""
    if len(text) > MAX_LENGTH or _WHOLE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a duration: write whole hours, minutes and seconds, like 1h30m")
    return timedelta(seconds=sum(int(n) * _SECONDS[unit] for n, unit in _PART.findall(text)))


def format_duration(value: timedelta) -> str:
    """Hours, minutes and seconds without zero parts; `0s` for nothing. Raises ValueError below zero."""
    total = int(value.total_seconds())
    if value < timedelta(0):
        raise ValueError(f"a duration is not negative: {value}")
    minutes, seconds = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (seconds, "s")) if n]
    return "".join(parts) or "0s"


def _coerce(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


Duration = Annotated[
    timedelta,
    BeforeValidator(_coerce),
    PlainSerializer(format_duration, return_type=str),
]
"""A timedelta in code, the written form in JSON."""
