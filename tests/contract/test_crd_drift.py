"""The typed models and the CRDs say the same: every field, default, bound and word, in both directions."""

import types
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin

import pytest

from crdkit.patterns import PATTERNS, matches
from crdkit.schema import ITEMS, Place, Schema, crd, rules, schema_of, walk, with_defaults
from crdkit.specimens import LEAST, SPECIMENS, full
from gpupod_operator.api import durations, money
from gpupod_operator.api.base import TEXT_LIMIT, ApiModel, dump
from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.names import API_VERSION, GPUPODS, SWEEPCELLS
from gpupod_operator.api.sweepcell import SweepCellSpec, SweepCellStatus

MODELS: dict[tuple[str, str], type[ApiModel]] = {
    ("GpuPod", "spec"): GpuPodSpec,
    ("GpuPod", "status"): GpuPodStatus,
    ("SweepCell", "spec"): SweepCellSpec,
    ("SweepCell", "status"): SweepCellStatus,
}
# Lists that the models do not cut: copied from a bounded list of spec, or bounded by the number of condition types.
NOT_CUT = {("status", "conditions"), ("status", "attempt", "candidate", "dataCenters")}
CONDITIONS_OF_OURS = 16


def _pairs(model: type[ApiModel], schema: Schema, place: Place) -> list[tuple[Place, type[ApiModel], Schema]]:
    """Every model with the object schema that it stands for."""
    pairs = [(place, model, schema)]
    for field in model.model_fields.values():
        child = schema.get("properties", {}).get(field.alias)
        inner = _core(field.annotation)
        where = (*place, str(field.alias))
        if child is not None and get_origin(inner) is tuple:
            inner, child, where = _core(get_args(inner)[0]), child["items"], (*where, ITEMS)
        if child is not None and isinstance(inner, type) and issubclass(inner, ApiModel):
            pairs += _pairs(inner, child, where)
    return pairs


def _core(annotation: Any) -> Any:
    """The type without `| None` and `Annotated`."""
    if get_origin(annotation) is Annotated:
        return _core(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        (inner,) = [arg for arg in get_args(annotation) if arg is not type(None)]
        return _core(inner)
    return annotation


PAIRS = [pair for (kind, part), model in MODELS.items() for pair in _pairs(model, schema_of(kind, part), (part,))]
NAMES = [f"{model.__name__}-{'.'.join(place)}" for place, model, _ in PAIRS]
each_object = pytest.mark.parametrize(("place", "model", "schema"), PAIRS, ids=NAMES)


@each_object
def test_model_and_schema_have_the_same_fields(place: Place, model: type[ApiModel], schema: Schema) -> None:
    aliases = {field.alias for field in model.model_fields.values()}
    assert aliases == set(schema["properties"]), place


@each_object
def test_what_the_schema_requires_the_model_requires(place: Place, model: type[ApiModel], schema: Schema) -> None:
    required = {field.alias for field in model.model_fields.values() if field.is_required()}
    assert required == set(schema.get("required", ())), place


@each_object
def test_each_field_has_the_type_and_the_words_of_its_schema(
    place: Place, model: type[ApiModel], schema: Schema
) -> None:
    for field in model.model_fields.values():
        child, inner = schema["properties"][field.alias], _core(field.annotation)
        if get_origin(inner) is tuple:
            assert child["type"] == "array", (place, field.alias)
            child, inner = child["items"], _core(get_args(inner)[0])
        assert _json_type(inner) == child["type"], (place, field.alias)
        words = [str(word) for word in inner] if issubclass(inner, StrEnum) else None
        assert child.get("enum") == words, (place, field.alias)
        if inner is timedelta:
            assert (child["pattern"], child["maxLength"]) == (durations.PATTERN, durations.MAX_LENGTH)
        if inner is Decimal:
            assert child["pattern"] == money.PATTERN
        if inner is datetime:
            assert child["format"] == "date-time"


def _json_type(inner: type) -> str:
    if issubclass(inner, ApiModel):
        return "object"
    for python, json in ((bool, "boolean"), (int, "integer"), (str, "string")):
        if issubclass(inner, python):
            return json
    assert inner in {timedelta, Decimal, datetime}, inner
    return "string"


@each_object
def test_each_object_that_may_be_empty_gets_the_same_defaults(
    place: Place, model: type[ApiModel], schema: Schema
) -> None:
    if place[0] == "status" or schema.get("required"):
        return
    by_schema = model.model_validate(with_defaults(schema, {}))
    assert by_schema == model()


@pytest.mark.parametrize("kind", ["GpuPod", "SweepCell"])
def test_the_least_manifest_reads_the_same_with_the_defaults_of_either(kind: str) -> None:
    model = MODELS[kind, "spec"]
    stored = with_defaults(schema_of(kind, "spec"), LEAST[kind])
    assert model.model_validate(stored) == model.model_validate(LEAST[kind])


@pytest.mark.parametrize("kind", ["GpuPod", "SweepCell"])
def test_every_spec_field_survives_reading_and_writing(kind: str) -> None:
    for specimen in SPECIMENS[kind]:
        model = MODELS[kind, "spec"]
        again = dump(model.model_validate(specimen))
        assert model.model_validate(again) == model.model_validate(specimen)
        assert _keys(specimen) <= _keys(again)


@pytest.mark.parametrize("kind", ["GpuPod", "SweepCell"])
def test_every_status_field_survives_reading_and_writing(kind: str) -> None:
    stored = full(schema_of(kind, "status"))
    assert dump(MODELS[kind, "status"].model_validate(stored)) == stored


def test_the_specimens_set_every_spec_field() -> None:
    for kind, specimens in SPECIMENS.items():
        places = {place for place, _ in walk(schema_of(kind, "spec"), ()) if place}
        assert places <= set().union(*(_keys(specimen) for specimen in specimens)), kind


@each_object
def test_what_grows_in_status_is_written_within_the_bounds_of_the_schema(
    place: Place, model: type[ApiModel], schema: Schema
) -> None:
    if place[0] != "status":
        return
    for name, field in model.model_fields.items():
        child, where = schema["properties"][field.alias], (*place, str(field.alias))
        if child["type"] == "array" and where not in NOT_CUT:
            item = full(child["items"])
            grown = model.model_validate({field.alias: [item] * (child["maxItems"] + 5)})
            assert len(dump(grown)[str(field.alias)]) == child["maxItems"], where
        if child["type"] == "string" and child.get("maxLength", 0) >= TEXT_LIMIT and name != "host_key":
            long = model.model_construct(**{name: "x" * (child["maxLength"] + 1)})
            assert len(long.model_dump(include={name}, by_alias=True)[str(field.alias)]) <= child["maxLength"], where


def test_conditions_fit_the_schema() -> None:
    for kind in ("GpuPod", "SweepCell"):
        assert schema_of(kind, "status")["properties"]["conditions"]["maxItems"] >= CONDITIONS_OF_OURS


@pytest.mark.parametrize(("kind", "part"), MODELS)
def test_every_string_list_and_number_is_bounded(kind: str, part: str) -> None:
    for place, schema in walk(schema_of(kind, part), (part,)):
        match schema["type"]:
            case "string":
                assert "enum" in schema or "maxLength" in schema, place
            case "array":
                assert "maxItems" in schema, place
                assert "x-kubernetes-list-type" in schema, place
            case "integer":
                assert "format" in schema, place
                assert part == "status" or {"minimum", "maximum"} <= set(schema), place


@pytest.mark.parametrize(("kind", "part"), MODELS)
def test_every_pattern_has_samples_and_they_are_right(kind: str, part: str) -> None:
    for place, schema in walk(schema_of(kind, part), (part,)):
        if "pattern" in schema:
            samples = PATTERNS[schema["pattern"]]
            assert all(matches(schema["pattern"], value) for value in samples.accepted), place
            assert not any(matches(schema["pattern"], value) for value in samples.refused), place


def test_every_rule_says_what_to_write_instead() -> None:
    for kind in ("GpuPod", "SweepCell"):
        for rule in rules(kind):
            assert any(
                word in rule.message for word in ("write", "remove", "make a new", "put", "raise", "or nobody")
            ), rule


@pytest.mark.parametrize(("kind", "plural"), [("GpuPod", GPUPODS), ("SweepCell", SWEEPCELLS)])
def test_names_are_those_that_the_code_uses(kind: str, plural: str) -> None:
    spec = crd(kind)["spec"]
    assert spec["names"]["kind"] == kind
    assert spec["names"]["plural"] == plural
    assert f"{spec['group']}/{spec['versions'][0]['name']}" == API_VERSION
    assert spec["versions"][0]["subresources"] == {"status": {}}


def test_no_category_has_the_name_of_a_resource() -> None:
    # kubectl would expand it, and `kubectl get gpupod NAME` would be an error
    names = [crd(kind)["spec"]["names"] for kind in ("GpuPod", "SweepCell")]
    resources = {word for n in names for word in (n["plural"], n["singular"], *n["shortNames"])}
    assert not resources & {category for n in names for category in n["categories"]}


def _keys(value: Any, place: Place = ()) -> set[Place]:
    if isinstance(value, dict):
        inner = [_keys(child, (*place, key)) for key, child in value.items()]
        return set().union({(*place, key) for key in value}, *inner)
    if isinstance(value, list):
        return set().union({(*place, ITEMS)} if value else set(), *(_keys(item, (*place, ITEMS)) for item in value))
    return set()
