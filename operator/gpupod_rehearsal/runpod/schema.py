"""A small JSON validator that words its complaints as the vendor's gateway does.

The vendor answers a body that breaks the contract with 422 and one line per violation, for example
`$: additional properties 'bogus' not allowed`. Only what the pod routes need is here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

Json = object


@dataclass(frozen=True, slots=True)
class Text:
    """A string, bounded from below, matching a pattern, or one of a set."""

    min_length: int = 0
    pattern: str | None = None
    enum: tuple[str, ...] = ()
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer within bounds. A float without fraction counts as one, as JSON Schema says."""

    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean."""


@dataclass(frozen=True, slots=True)
class Listing:
    """An array of one kind of item."""

    items: Schema
    max_items: int | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """An object with free keys and one kind of value."""

    values: Schema


@dataclass(frozen=True, slots=True)
class Record:
    """An object with known properties; anything else is refused."""

    fields: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    min_properties: int = 0
    required_unless: Mapping[str, str] = field(default_factory=dict)


Schema = Text | Whole | Flag | Listing | Mapped | Record

_JSON_NAMES: Final = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def violations(schema: Schema, value: Json, path: str = "$") -> list[str]:
    """Every way `value` breaks `schema`, worded like the vendor; empty when it fits."""
    match schema:
        case Text():
            return _text(schema, value, path)
        case Whole():
            return _whole(schema, value, path)
        case Flag():
            return [] if isinstance(value, bool) else _mistyped(path, value, "boolean")
        case Listing():
            return _listing(schema, value, path)
        case Mapped():
            return _mapped(schema, value, path)
        case Record():
            return _record(schema, value, path)


def _text(schema: Text, value: Json, path: str) -> list[str]:
    if value is None and schema.nullable:
        return []
    if not isinstance(value, str):
        return _mistyped(path, value, "null or string" if schema.nullable else "string")
    found = []
    if len(value) < schema.min_length:
        found.append(f"{path}: minLength: got {len(value)}, want {schema.min_length}")
    if schema.pattern is not None and not re.search(schema.pattern, value):
        found.append(f"{path}: '{value}' does not match pattern '{schema.pattern}'")
    if schema.enum and value not in schema.enum:
        found.append(f"{path}: value must be one of {', '.join(repr(item) for item in schema.enum)}")
    return found


def _whole(schema: Whole, value: Json, path: str) -> list[str]:
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        return _mistyped(path, value, "integer")
    if schema.minimum is not None and value < schema.minimum:
        return [f"{path}: minimum: got {value:g}, want {schema.minimum}"]
    if schema.maximum is not None and value > schema.maximum:
        return [f"{path}: maximum: got {value:g}, want {schema.maximum}"]
    return []


def _listing(schema: Listing, value: Json, path: str) -> list[str]:
    if not isinstance(value, list):
        return _mistyped(path, value, "array")
    found = []
    if schema.max_items is not None and len(value) > schema.max_items:
        found.append(f"{path}: maxItems: got {len(value)}, want {schema.max_items}")
    for index, item in enumerate(value):
        found += violations(schema.items, item, f"{path}[{index}]")
    return found


def _mapped(schema: Mapped, value: Json, path: str) -> list[str]:
    if not isinstance(value, dict):
        return _mistyped(path, value, "object")
    return [line for key, item in value.items() for line in violations(schema.values, item, f"{path}.{key}")]


def _record(schema: Record, value: Json, path: str) -> list[str]:
    if not isinstance(value, dict):
        return _mistyped(path, value, "object")
    missing = [name for name in schema.required if name not in value]
    missing += [name for name, other in schema.required_unless.items() if name not in value and other not in value]
    found = [f"{path}: missing property '{name}'" for name in missing]
    unknown = sorted(set(value) - set(schema.fields))
    if unknown:
        found.append(f"{path}: additional properties {', '.join(repr(name) for name in unknown)} not allowed")
    if len(value) < schema.min_properties:
        found.append(f"{path}: minProperties: got {len(value)}, want {schema.min_properties}")
    for name, kind in schema.fields.items():
        if name in value:
            found += violations(kind, value[name], f"{path}.{name}")
    return found


def _mistyped(path: str, value: Json, wanted: str) -> list[str]:
    return [f"{path}: got {_JSON_NAMES.get(type(value), 'unknown')}, want {wanted}"]
