"""The pages say what the code says, and each of their links leads somewhere."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from gpupod_operator.api.annotations import ABANDON_DATA, APPROVE_TERMINATE, MIGRATE, RESUME
from gpupod_operator.api.gpupod_spec import Candidate, EnvVar, GpuPodSpec
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.supported import GPUPOD
from gpupod_operator.api.sweepcell import Artifact, SweepCellSpec
from gpupod_operator.cli.docs import reasons_page, with_block

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]

LISTS_AS_A_WHOLE = (Candidate, EnvVar, Artifact)


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def leaves(model: type[BaseModel], prefix: str = "") -> set[str]:
    """Every field that a person can write, by its path; entries of lists count as the list."""
    found: set[str] = set()
    for field in model.model_fields.values():
        path = f"{prefix}{field.alias}"
        models = [m for m in _models(field.annotation) if m not in LISTS_AS_A_WHOLE]
        found |= leaves(models[0], f"{path}.") if models else {path}
    return found


def _models(annotation) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for part in getattr(annotation, "__args__", ()) for m in _models(part)]


def table_fields(section: str) -> set[str]:
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_the_reasons_and_the_unbuilt_fields_are_those_of_the_code():
    hint = "run: python -m gpupod_operator.cli.docs docs"
    assert page("reasons.md") == reasons_page(), hint
    assert page("limits.md") == with_block(page("limits.md")), hint


@pytest.mark.parametrize(("heading", "model"), [("## GpuPod", GpuPodSpec), ("## SweepCell", SweepCellSpec)])
def test_every_field_has_its_row_in_the_table_of_changes_and_no_other_has(heading, model):
    section = page("field-changes.md").partition(heading + "\n")[2].partition("\n## ")[0]
    assert table_fields(section) == leaves(model)


def test_what_the_table_of_changes_calls_unbuilt_is_what_the_code_calls_so():
    lines = [line for line in page("field-changes.md").splitlines() if "not built yet" in line]
    named = {f"spec.{field}" for line in lines for field in re.findall(r"`([^`]+)`", line.split("|")[1])}
    assert named == {field.path for field in GPUPOD}


def test_every_cause_in_the_runbook_is_a_reason_of_the_code():
    rows = [line.split("|")[1] for line in page("wedge.md").splitlines() if line.startswith("| `")]
    causes = {word for row in rows for word in re.findall(r"`([A-Z][A-Za-z]+)`", row)}
    assert len(causes) > 10 and causes <= {str(reason) for reason in Reason}


def test_an_annotation_that_a_page_names_exists():
    known = {ABANDON_DATA, APPROVE_TERMINATE, MIGRATE, RESUME, "gpupod.dev/close-breaker", "gpupod.dev/reconcile-at"}
    kinds = {"gpupod.dev/v1alpha1"}
    for path in PAGES:
        named = set(re.findall(r"gpupod\.dev/[a-z0-9-]+", path.read_text(encoding="utf-8")))
        assert named <= known | kinds, path.name


def test_every_link_between_pages_leads_somewhere():
    for path in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_page_is_linked_from_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {p.name for p in DOCS.glob("*.md")} <= set(re.findall(r"\(docs/([a-z-]+\.md)\)", text))
