"""`python -m helmkit.page`: writes docs/helm.md's table from the chart's values and schema. A test holds it current."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "manifests" / "helm" / "gpupod-operator"
PAGE = ROOT / "docs" / "helm.md"
BEGIN, END = "<!-- generated: python -m helmkit.page -->", "<!-- /generated -->"


def rows(values: dict[str, Any], schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """(value, default, description) of each leaf, as values.yaml has them. Raises KeyError for one not described."""
    for name, default in values.items():
        about = schema["properties"][name]
        path = f"{prefix}{name}"
        if about.get("properties"):
            yield from rows(default, about, f"{path}.")
        else:
            yield path, json.dumps(default), about["description"]


def table() -> str:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    lines = [f"| `{name}` | `{default}` | {words} |" for name, default, words in rows(values, schema)]
    return "\n".join((BEGIN, "| Value | Default | |", "|---|---|---|", *lines, END))


def renewed(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    return before + table() + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
