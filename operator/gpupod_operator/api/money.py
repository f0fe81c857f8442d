"""Money as decimal strings: USD, at most four places, never a float."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer

PATTERN: Final = r"^\d{1,7}(\.\d{1,4})?$"
"""Also the schema's pattern: from 0 to 9,999,999.9999 USD."""

_WHOLE = re.compile(PATTERN, re.ASCII)
_STEP: Final = Decimal("0.0001")
_MOST: Final = Decimal("9999999.9999")


def parse_money(text: str) -> Decimal:
    """USD from the written form. Raises ValueError for anything that the schema would refuse."""
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not an amount: write it like 2.49, with at most four places")
    return Decimal(text)


def format_money(value: Decimal) -> str:
    """USD with two to four places, rounded half up. Raises ValueError below zero, for NaN, and over seven digits."""
    if not value.is_finite() or value < 0 or value > _MOST:
        raise ValueError(f"not an amount that the API holds: {value}")
    text = f"{value.quantize(_STEP, rounding=ROUND_HALF_UP):f}"
    whole, _, places = text.partition(".")
    return f"{whole}.{places.rstrip('0').ljust(2, '0')}"


def _coerce(value: object) -> object:
    if isinstance(value, str):
        return parse_money(value)
    if isinstance(value, float):
        raise ValueError("money is a decimal string, never a float")  # noqa: TRY004 - pydantic collects ValueErrors
    return value


Money = Annotated[Decimal, BeforeValidator(_coerce), PlainSerializer(format_money, return_type=str)]
"""A Decimal (USD) in code, the written form in JSON."""
