"""Alerts name series that the operator has, and each has a page that says what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpupod_operator.runpod import calls
from gpupod_operator.runtime.metrics import Metrics

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "manifests" / "components" / "monitoring"
RUNBOOKS = ROOT / "docs" / "runbooks"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "rules.yaml").read_text())["spec"]["groups"] for rule in group["rules"]
]


def series() -> dict[str, tuple[str, ...]]:
    """Label names by series, from the operator's own registry."""
    registry = Metrics().registry
    # there is no public way to the labels of a series that has no sample yet
    return {name: tuple(c._labelnames) for name, c in registry._names_to_collectors.items()}  # type: ignore[attr-defined]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_series_and_labels_that_there_are(rule: dict[str, Any]) -> None:
    known = series()
    names = re.findall(r"\b(?:gpupod_\w+|workqueue_\w+|controller_runtime_\w+)", rule["expr"])
    assert names
    assert [name for name in names if name not in known] == []
    labels = {label for name in names for label in known[name]}
    for group in re.findall(r"by \(([^)]*)\)", rule["expr"]):
        assert {part.strip() for part in group.split(",")} <= labels
    for call in re.findall(r'call="(\w+)"', rule["expr"]):
        assert call in {c.name for c in vars(calls).values() if isinstance(c, calls.Call)}
    for used in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]):
        assert used in labels


def test_each_alert_has_its_page_and_each_page_its_alert() -> None:
    linked = {rule["alert"]: Path(rule["annotations"]["runbook_url"]).name for rule in RULES}
    assert linked == {name: f"{name}.md" for name in linked}
    assert {page.name for page in RUNBOOKS.glob("*.md")} == set(linked.values())


@pytest.mark.parametrize("page", sorted(RUNBOOKS.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_says_what_it_costs_what_to_look_at_and_what_to_do(page: Path) -> None:
    text = page.read_text()
    assert [
        part
        for part in ("**Costs**", "by itself:**", "**Look:**", "**Do:**")
        if part not in text.replace("**By", "**by")
    ] == []


def test_alerts_say_how_bad_they_are() -> None:
    assert {rule["labels"]["severity"] for rule in RULES} <= {"critical", "warning"}
    assert all(rule["for"] for rule in RULES)
