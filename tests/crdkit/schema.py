"""Reads the CRDs and walks their schemas."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ITEMS = "[]"
Schema = dict[str, Any]
Place = tuple[str, ...]

CRDS = Path(__file__).parents[2] / "crds"


@dataclass(frozen=True)
class Rule:
    """One CEL rule and where it stands."""

    kind: str
    place: Place
    rule: str
    message: str


@cache
def crd(kind: str) -> dict[str, Any]:
    """The CRD of a kind, as shipped."""
    text = (CRDS / f"{kind.lower()}s.yaml").read_text(encoding="utf-8")
    manifest: dict[str, Any] = yaml.safe_load(text)
    return manifest


def root_schema(kind: str) -> Schema:
    (version,) = crd(kind)["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


def schema_of(kind: str, part: str) -> Schema:
    """The schema of `spec` or `status`."""
    schema: Schema = root_schema(kind)["properties"][part]
    return schema


def walk(schema: Schema, place: Place) -> Iterator[tuple[Place, Schema]]:
    """Every schema under this one, itself first, with its place; list items stand at `[]`."""
    yield place, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, (*place, name))
    if "items" in schema:
        yield from walk(schema["items"], (*place, ITEMS))


def rules(kind: str) -> Iterator[Rule]:
    """Every CEL rule of a kind."""
    for place, schema in walk(root_schema(kind), ()):
        for rule in schema.get("x-kubernetes-validations", ()):
            yield Rule(kind, place, rule["rule"], rule["message"])


def with_defaults(schema: Schema, value: Any) -> Any:
    """The value as the API server stores it: defaults filled in, at every depth."""
    if isinstance(value, list):
        return [with_defaults(schema["items"], item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for name, child in schema.get("properties", {}).items():
        if name not in filled and "default" in child:
            filled[name] = deepcopy(child["default"])
        if name in filled:
            filled[name] = with_defaults(child, filled[name])
    return filled


def has(value: Any, place: Place) -> bool:
    """Whether something stands at the place (in the first list items that lead there)."""
    try:
        _steps(value, place)
    except LookupError:
        return False
    return True


def replaced(value: Any, place: Place, new: Any) -> Any:
    """A copy with `new` at the place."""
    changed = deepcopy(value)
    *parents, last = _steps(changed, place)
    _at(changed, parents)[last] = new
    return changed


def removed(value: Any, place: Place) -> Any:
    """A copy without what stands at the place."""
    changed = deepcopy(value)
    *parents, last = _steps(changed, place)
    del _at(changed, parents)[last]
    return changed


def found(value: Any, place: Place) -> Any:
    """What stands at the place."""
    return _at(value, _steps(value, place))


def written(value: Any, place: Place) -> str:
    """The place as the API server writes it: `spec.container.env[0].name`."""
    text = ""
    for step in _steps(value, place):
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def _steps(value: Any, place: Place) -> list[str | int]:
    """Keys and indexes that lead to the place; the first items of lists that have it."""
    if not place:
        return []
    step, *rest = place
    if step == ITEMS:
        for index, item in enumerate(value):
            try:
                return [index, *_steps(item, tuple(rest))]
            except LookupError:
                continue
        raise LookupError(place)
    if not isinstance(value, dict) or step not in value:
        raise LookupError(place)
    return [step, *_steps(value[step], tuple(rest))]


def _at(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        value = value[step]
    return value
