"""Times: timezone-aware UTC in code, RFC 3339 with `Z` in JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, PlainSerializer, TypeAdapter


def parse_time(text: str) -> datetime:
    """RFC 3339 with a zone, as UTC; digits beyond microseconds are cut. Raises ValueError for anything else."""
    return _to_utc(_DATETIME.validate_python(text))


def format_time(value: datetime) -> str:
    """RFC 3339 in UTC with `Z`; microseconds only when there are any. Raises ValueError for a naive datetime."""
    if value.tzinfo is None:
        raise ValueError("a time without a zone")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _to_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time without a zone")
    return value.astimezone(UTC)


Time = Annotated[datetime, AfterValidator(_to_utc), PlainSerializer(format_time, return_type=str)]
"""A timezone-aware UTC datetime in code, RFC 3339 with `Z` in JSON."""

_DATETIME: TypeAdapter[datetime] = TypeAdapter(datetime)
