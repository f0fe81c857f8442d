"""Unknown as a third value.

An error, a partial page, a timeout, a missing exit status are all *unknown*: they never destroy, never create and
never drop a row. The two classes below make it impossible to forget: code has to look before it can use the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A fact, as read in this pass."""

    value: T


@dataclass(frozen=True, slots=True)
class Unknown:
    """A question that was asked and not answered; `why` is for people (no secrets)."""

    why: str


Fact: TypeAlias = Known[T] | Unknown
