"""The base of every API model: frozen, camelCase outside, tolerant of what a newer version wrote."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WrapSerializer,
)
from pydantic.alias_generators import to_camel

TEXT_LIMIT: Final = 4096
"""Characters of a free text in status, as the schema bounds it; longer texts are cut on writing."""


class ApiModel(BaseModel):
    """Immutable; fields that this version does not know are ignored on read (an older operator after a rollback)."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")


def dump(model: BaseModel) -> dict[str, Any]:
    """The JSON form for the API server: camelCase keys, unset (None) fields left out."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def clip(text: str, limit: int = TEXT_LIMIT) -> str:
    """The text within the schema's bound, so that a long vendor message cannot make a status unwritable."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


Text = Annotated[str, PlainSerializer(clip, return_type=str)]
"""Free text for people in status; cut to TEXT_LIMIT characters on writing."""


def at_most(count: int) -> WrapSerializer:
    """For a list of status: only the first `count` entries are written (the schema's maxItems)."""

    def first(value: tuple[Any, ...] | None, handler: SerializerFunctionWrapHandler) -> Any:
        return handler(value if value is None else value[:count])

    return WrapSerializer(first)


def newest(count: int) -> WrapSerializer:
    """For a list of status that grows at its end: only the last `count` entries are written."""

    def last(value: tuple[Any, ...] | None, handler: SerializerFunctionWrapHandler) -> Any:
        return handler(value if value is None else value[-count:])

    return WrapSerializer(last)
