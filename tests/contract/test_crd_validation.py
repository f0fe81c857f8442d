"""Every validation of the contract on a real API server: what it accepts, what it refuses, and what it says then."""

from typing import Any, NamedTuple

import pytest

from clusterkit import Admin, Refused
from crdkit.patterns import PATTERNS, matches
from crdkit.rules import CHANGES, RULES, ChangeCase, RuleCase
from crdkit.schema import ITEMS, Place, Schema, found, has, removed, replaced, rules, schema_of, walk, written
from crdkit.specimens import LEAST, SPECIMENS, Manifest, full, manifest

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crds")]

NAMESPACE = "default"
NOT_ZERO = "duration(self) > duration('0s')"

# Fields that a rule ties to another field of the specimens: values at the edge of what the rule allows there.
TIED: dict[str, list[Any]] = {"sshWait": ["9m36s"], "wedgeAfter": ["10m", "999999h"]}


class Bad(NamedTuple):
    """A manifest that must be refused, with words of the answer and the field that it must name."""

    manifest: Manifest
    words: str
    field: str


def _root_places(kind: str) -> list[tuple[Place, Schema]]:
    return [(place, schema) for place, schema in walk(schema_of(kind, "spec"), ("spec",)) if place[-1] != ITEMS]


FIELDS = [(kind, place, schema) for kind in ("GpuPod", "SweepCell") for place, schema in _root_places(kind)]
each_field = pytest.mark.parametrize(
    ("kind", "place", "schema"), FIELDS, ids=[f"{kind}-{'.'.join(place)}" for kind, place, _ in FIELDS]
)
each_rule = pytest.mark.parametrize("case", RULES, ids=[f"{case.kind}-{case.message}" for case in RULES])
each_change = pytest.mark.parametrize(
    "case", CHANGES, ids=[f"{case.kind}-{case.message}-{number}" for number, case in enumerate(CHANGES)]
)


@pytest.mark.parametrize("kind", ["GpuPod", "SweepCell"])
async def test_manifests_with_every_field_and_with_the_fewest_are_accepted(admin: Admin, kind: str) -> None:
    for spec in (*SPECIMENS[kind], LEAST[kind]):
        await _accepted(admin, manifest(kind, spec))


@pytest.mark.parametrize("kind", ["GpuPod", "SweepCell"])
async def test_a_field_that_the_schema_does_not_know_is_refused_by_a_strict_client(admin: Admin, kind: str) -> None:
    with pytest.raises(Refused, match=r"field not declared in schema|unknown field"):
        await admin.apply(manifest(kind, LEAST[kind] | {"sharky": 1}), namespace=NAMESPACE, dry_run=True)


@pytest.mark.parametrize("kind", ["GpuPod", "SweepCell"])
async def test_a_manifest_without_a_spec_is_refused(admin: Admin, kind: str) -> None:
    empty = manifest(kind, {})
    del empty["spec"]
    await _refused(admin, empty, "Required value", "spec")


@each_field
async def test_bounds_of_a_field_hold_and_the_answer_names_the_field(
    admin: Admin, kind: str, place: Place, schema: Schema
) -> None:
    base = _specimen_with(kind, place)
    for good in _within(base, place, schema):
        await _accepted(admin, good)
    for bad in _beyond(base, place, schema):
        await _refused(admin, bad.manifest, bad.words, bad.field)


@each_rule
async def test_a_rule_accepts_what_it_should_and_says_what_to_write_otherwise(admin: Admin, case: RuleCase) -> None:
    for spec in case.accepted:
        await _accepted(admin, manifest(case.kind, spec))
    for spec in case.refused:
        await _refused(admin, manifest(case.kind, spec), case.message)


@each_change
async def test_a_rule_about_changes_holds_while_its_condition_does(
    admin: Admin, namespace: str, case: ChangeCase
) -> None:
    created = await admin.create(manifest(case.kind, case.before, name="subject"), namespace=namespace)
    if case.status:
        created = await admin.patch(
            case.kind, "subject", {"status": case.status}, namespace=namespace, subresource="status"
        )
    version = {"name": "subject", "resourceVersion": created["metadata"]["resourceVersion"]}
    for spec in case.refused:
        with pytest.raises(Refused) as refusal:
            await admin.replace(manifest(case.kind, spec) | {"metadata": version}, namespace=namespace)
        assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")
        assert case.message in refusal.value.message
    for spec in case.accepted:
        after = await admin.replace(manifest(case.kind, spec) | {"metadata": version}, namespace=namespace)
        version["resourceVersion"] = after["metadata"]["resourceVersion"]


@pytest.mark.parametrize("kind", ["GpuPod", "SweepCell"])
async def test_status_holds_every_field_at_once_and_refuses_what_is_out_of_bounds(
    admin: Admin, namespace: str, kind: str
) -> None:
    await admin.create(manifest(kind, LEAST[kind], name="subject"), namespace=namespace)
    schema = schema_of(kind, "status")
    whole = {"status": full(schema)}
    stored = await admin.patch(kind, "subject", whole, namespace=namespace, subresource="status")
    assert stored["status"] == whole["status"]
    for place, child in walk(schema, ("status",)):
        if place == ("status",) or place[-1] == ITEMS:
            continue
        for bad in _beyond(whole, place, child):
            patch = {"status": {place[1]: bad.manifest["status"].get(place[1])}}
            with pytest.raises(Refused) as refusal:
                await admin.patch(kind, "subject", patch, namespace=namespace, subresource="status")
            assert refusal.value.status == 422, (place, refusal.value.message)
            assert bad.words in refusal.value.message, place
            assert bad.field in refusal.value.message, place


@pytest.mark.parametrize("kind", ["GpuPod", "SweepCell"])
async def test_a_status_write_leaves_spec_alone_and_a_spec_write_leaves_status_alone(
    admin: Admin, namespace: str, kind: str
) -> None:
    await admin.create(
        manifest(kind, LEAST[kind], name="subject", status={"message": "by the person"}), namespace=namespace
    )
    other = {"spec": {"resync": "1h", "keepRunning": True}, "status": {"message": "by the operator"}}
    after = await admin.patch(kind, "subject", other, namespace=namespace, subresource="status")
    assert after["status"]["message"] == "by the operator"
    assert not after["spec"].get("keepRunning")
    assert after["spec"].get("resync") != "1h"
    after = await admin.patch(kind, "subject", {"status": {"message": "by the person"}}, namespace=namespace)
    assert after["status"]["message"] == "by the operator"


async def test_objects_are_selected_by_the_fields_that_the_contract_names(admin: Admin, namespace: str) -> None:
    for name, sweep in (("a", "one"), ("b", "two")):
        await admin.create(manifest("SweepCell", LEAST["SweepCell"] | {"sweep": sweep}, name=name), namespace=namespace)
    await admin.patch("SweepCell", "a", {"status": {"phase": "Produced"}}, namespace=namespace, subresource="status")
    for selector, names in (
        ("spec.sweep=two", ["b"]),
        ("spec.podRef.name=sweep", ["a", "b"]),
        ("status.phase=Produced", ["a"]),
    ):
        listed = await admin.list("SweepCell", namespace=namespace, fieldSelector=selector)
        assert [item["metadata"]["name"] for item in listed] == names, selector


def test_every_rule_of_the_contract_has_a_refused_and_an_accepted_case() -> None:
    tried: list[RuleCase | ChangeCase] = [*RULES, *CHANGES]
    for kind in ("GpuPod", "SweepCell"):
        for rule in rules(kind):
            if rule.rule == NOT_ZERO:
                continue  # tried field by field, above
            cases = [case for case in tried if case.kind == kind and rule.message.startswith(case.message)]
            assert any(case.refused for case in cases), rule.message
            assert any(case.accepted for case in cases), rule.message


def test_every_case_belongs_to_a_rule_of_the_contract() -> None:
    tried: list[RuleCase | ChangeCase] = [*RULES, *CHANGES]
    for case in tried:
        assert [r for r in rules(case.kind) if r.message.startswith(case.message)], case.message


def _specimen_with(kind: str, place: Place) -> Manifest:
    """The first specimen in which the field is set."""
    return next(m for m in (manifest(kind, spec) for spec in SPECIMENS[kind]) if has(m, place))


def _within(base: Manifest, place: Place, schema: Schema) -> list[Manifest]:
    """Manifests with the field at its bounds, with each of its words, with samples of its pattern."""
    values: list[Any] = [schema[key] for key in ("minimum", "maximum") if key in schema]
    values += schema.get("enum", [])
    if "pattern" in schema:
        longest = "a" * schema["maxLength"]
        samples = [*PATTERNS[schema["pattern"]].accepted, longest]
        values += [v for v in samples if len(v) <= schema["maxLength"] and matches(schema["pattern"], v)]
    elif schema["type"] == "string" and "maxLength" in schema and "format" not in schema:
        values += ["x" * schema["maxLength"]]
    if schema["type"] == "array":
        values += [_list_of(base, place, schema, schema["maxItems"])]
        values += [[]] if not schema.get("minItems") else []
    return [replaced(base, place, value) for value in TIED.get(place[-1], values)]


def _beyond(base: Manifest, place: Place, schema: Schema) -> list[Bad]:
    """Manifests that break one validation of the field each."""
    field = written(base, place)
    bad: list[tuple[Any, str]] = [("text" if schema["type"] != "string" else {"a": "b"}, "must be of type")]
    if schema["type"] == "array":
        bad += _beyond_list(base, place, schema)
    if "enum" in schema:
        bad += [("Perhaps", "supported values")]
    if "minimum" in schema:
        bad += [(schema["minimum"] - 1, "should be greater than or equal to")]
    if "maximum" in schema:
        bad += [(schema["maximum"] + 1, "should be less than or equal to")]
    if "pattern" in schema:
        bad += [(value, "should match") for value in PATTERNS[schema["pattern"]].refused]
    if schema["type"] == "string" and "maxLength" in schema:
        bad += [("a" * (schema["maxLength"] + 1), "Too long")]
    if schema.get("minLength"):
        bad += [("", "should be at least")]
    if schema.get("format") == "date-time":
        bad += [("tomorrow", "must be of type date-time")]
    for rule in schema.get("x-kubernetes-validations", ()):
        bad += [(zero, rule["message"]) for zero in ("0s", "0h0m") if rule["rule"] == NOT_ZERO]
    missing = [(name, removed(base, (*place, name))) for name in schema.get("required", ())]
    return [Bad(replaced(base, place, value), words, field) for value, words in bad] + [
        Bad(without, "Required value", f"{field}.{name}") for name, without in missing
    ]


def _beyond_list(base: Manifest, place: Place, schema: Schema) -> list[tuple[Any, str]]:
    items, first = schema["items"], found(base, place)[0]
    bad: list[tuple[Any, str]] = [(_list_of(base, place, schema, schema["maxItems"] + 1), "must have at most")]
    if schema.get("minItems"):
        bad += [([], "should have at least")]
    if schema["x-kubernetes-list-type"] != "atomic":
        bad += [([first, first], "Duplicate value")]
    if items["type"] == "string":
        bad += [
            ([value], "should match") for value in (PATTERNS[items["pattern"]].refused if "pattern" in items else ())
        ]
        bad += [(["a" * (items["maxLength"] + 1)], "Too long")]
    return bad


def _list_of(base: Manifest, place: Place, schema: Schema, length: int) -> list[Any]:
    """As many valid items as asked, all different."""
    first = found(base, place)[0]
    if isinstance(first, dict):
        names = schema.get("x-kubernetes-list-map-keys", ["none"])
        return [first | {key: f"{first[key]}{n}" for key in names if key in first} for n in range(length)]
    if first.endswith(("/tcp", "/http")):
        return [f"{n + 1}/tcp" for n in range(length)]
    return [f"{first}-{n}" if first.isupper() else f"{first}{n}" for n in range(length)]


async def _accepted(admin: Admin, good: Manifest) -> None:
    await admin.apply(good, namespace=NAMESPACE, dry_run=True)


async def _refused(admin: Admin, bad: Manifest, words: str, field: str = "") -> None:
    with pytest.raises(Refused) as refusal:
        await admin.create(bad, namespace=NAMESPACE)
    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid"), refusal.value.message
    assert words in refusal.value.message
    assert field in refusal.value.message
