"""The chart's values, schema, page and CRDs say the same as the operator."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gpupod_operator import __version__
from gpupod_operator.runtime.settings import Settings
from helmkit.page import CHART, PAGE, ROOT, renewed

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SET_BY_THE_CHART = {"namespace", "runpod_key_file", "health_host", "health_port", "metrics_port"}
NO_CHOICE = {"leader_elect", "lease_name"}


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda m: m[1].upper(), name)


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == renewed(PAGE.read_text())


def test_the_defaults_are_valid() -> None:
    jsonschema.validate(VALUES, SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": {"maxPods": "three"}},
        {"settings": {"maxHourlyAccount": 25}},
        {"settings": {"observeEvery": "soon"}},
        {"settings": {"watchNamespaces": ["Team"]}},
        {"settings": {"unknown": True}},
        {"image": {"digest": "latest"}},
        {"replicas": -1},
        {"replica": 2},
    ],
    ids=str,
)
def test_a_typo_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)


def test_every_flag_of_the_operator_is_a_value() -> None:
    flags = {camel(name) for name in set(Settings.model_fields) - SET_BY_THE_CHART - NO_CHOICE}
    assert set(VALUES["settings"]) == flags


def test_the_charts_crds_are_the_shipped_ones() -> None:
    shipped = {f.name: f.read_text() for f in Path(ROOT / "crds").glob("*.yaml")}
    assert {f.name: f.read_text() for f in (CHART / "files" / "crds").glob("*.yaml")} == shipped


def test_its_version_is_the_packages() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
