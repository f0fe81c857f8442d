"""Reading with patience: unknown fields are ignored, a missing or strange one is None."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler, field_validator


class Malformed(ValueError):
    """An item that cannot be told; the message names no value of it."""


class Tolerant(BaseModel):
    """A vendor's object of which every field may be missing."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _strange_is_none(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        """One field of tomorrow must not hide the item that carries it."""
        try:
            return handler(value)
        except ValidationError:
            return None

    @classmethod
    def read(cls, item: object) -> Self:
        """The item, as far as it can be read. Raises Malformed when it is no object."""
        if not isinstance(item, dict):
            raise Malformed("an item of the answer is no object")
        return cls.model_validate(item)


Item = TypeVar("Item", bound=Tolerant)


def objects(model: type[Item], items: list[Any] | None) -> list[Item]:
    """The readable entries of a list; a strange one must not hide its neighbours."""
    return [model.read(item) for item in items or () if isinstance(item, dict)]


def money(value: Decimal | None) -> Decimal | None:
    """An amount of USD, None for what cannot be one."""
    return value if value is not None and value.is_finite() and value >= 0 else None
