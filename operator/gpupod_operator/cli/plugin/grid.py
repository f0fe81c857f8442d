"""SweepCells from a grid of parameters and templates. Pure."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpupod_operator.api.names import API_VERSION, SWEEPCELL_KIND
from gpupod_operator.api.sweepcell import SweepCellSpec

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_GLOB = re.compile(r"[*?\[]")
_BUILT_IN = ("sweep", "cell", "i")
MOST_CELLS = 10_000
"""A grid above this is a mistake in a range more often than a sweep; the API server would take it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The sweep, its pod, and the parameters: (name, values) in the order they vary, the last one fastest."""

    sweep: str
    pod: str
    parameters: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Templates:
    """Texts with `{name}` in them. `cell` None: `<parameter>-<value>` of all, joined by `-`."""

    cell: str | None
    done_file: str
    artifacts: tuple[Mapping[str, Any], ...]
    path: str
    repo: str
    repo_type: str
    revision: str
    token: Mapping[str, str]


def parameter(text: str) -> tuple[str, tuple[str, ...]]:
    """`lr=1e-4,3e-4`. Raises ValueError for anything else, and for a name that the templates use themselves."""
    name, equals, values = text.partition("=")
    several = tuple(value.strip() for value in values.split(","))
    if not equals or not name.isidentifier() or not all(several):
        raise ValueError(f"--param {text!r}: write it like lr=1e-4,3e-4")
    if name in _BUILT_IN:
        raise ValueError(f"--param {name}: the name has a meaning of its own in templates; take another")
    if len(set(several)) < len(several):
        raise ValueError(f"--param {name}: a value stands there twice")
    return name, several


def artifact(text: str) -> dict[str, Any]:
    """`NAME=PATH:PATTERN,PATTERN[@MIN]`: globs become `include` with a minimum (1), plain names an exact set."""
    name, equals, rest = text.partition("=")
    path, colon, listed = rest.rpartition(":")
    listed, at, least = listed.partition("@")
    patterns = [pattern for pattern in listed.split(",") if pattern]
    if not (equals and colon and name and path and patterns) or (at and not least.isdigit()):
        raise ValueError(f"--artifact {text!r}: write it like evals=/workspace/out/{{cell}}/evals:a.json,b.json")
    globs = [bool(_GLOB.search(pattern)) for pattern in patterns]
    if all(globs):
        return {"name": name, "path": path, "include": patterns, "minFiles": int(least) if at else 1}
    if any(globs) or at:
        raise ValueError(
            f"--artifact {name}: an exact set of files has neither globs nor a minimum; make it two artifacts"
        )
    return {"name": name, "path": path, "files": patterns}


def sweep_cells(grid: Grid, templates: Templates) -> list[dict[str, Any]]:
    """One SweepCell a point. Raises ValueError where two would share a name or a destination, or a name is none."""
    points = list(_points(grid, templates))
    made = [_cell(grid, templates, values) for values in points]
    _unique("name", [cell["metadata"]["name"] for cell in made])
    _unique("destination path", [cell["spec"]["destination"]["path"] for cell in made])
    _unique("done file", [cell["spec"]["source"]["doneFile"] for cell in made])
    return made


def _points(grid: Grid, templates: Templates) -> Iterator[dict[str, str]]:
    names = [name for name, _ in grid.parameters]
    _unique("--param", names)
    combinations = list(itertools.islice(itertools.product(*(v for _, v in grid.parameters)), MOST_CELLS + 1))
    if len(combinations) > MOST_CELLS:
        raise ValueError(f"the grid has more than {MOST_CELLS} cells")
    digits = max(2, len(str(len(combinations) - 1)))
    for number, values in enumerate(combinations):
        point = dict(zip(names, values, strict=True))
        point |= {"sweep": grid.sweep, "i": str(number).zfill(digits)}
        pattern = templates.cell if templates.cell is not None else "-".join(f"{name}-{{{name}}}" for name in names)
        yield point | {"cell": _slug(_fill(pattern, point))}


def _cell(grid: Grid, templates: Templates, point: Mapping[str, str]) -> dict[str, Any]:
    name = f"{_slug(grid.sweep)}-{point['cell']}"
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise ValueError(f"{name!r} is no Kubernetes name (lower case, digits, - and ., at most 253); give --cell")
    spec = {
        "podRef": {"name": grid.pod},
        "sweep": grid.sweep,
        "source": {
            "doneFile": _fill(templates.done_file, point),
            "artifacts": [{**a, "path": _fill(a["path"], point)} for a in templates.artifacts],
        },
        "destination": {
            "repo": templates.repo,
            "type": templates.repo_type,
            "revision": templates.revision,
            "path": _fill(templates.path, point),
            "tokenSecretRef": dict(templates.token),
        },
    }
    SweepCellSpec.model_validate(spec)
    return {"apiVersion": API_VERSION, "kind": SWEEPCELL_KIND, "metadata": {"name": name}, "spec": spec}


def _fill(template: str, point: Mapping[str, str]) -> str:
    """The template with its names replaced. Raises ValueError for a name that it cannot know."""
    parts = []
    for literal, field, spec, conversion in string.Formatter().parse(template):
        parts.append(literal)
        if field is None:
            continue
        if field not in point or spec or conversion:
            raise ValueError(
                f"template {template!r}: {{{field}}} is not known here; there are {', '.join(sorted(point))}"
            )
        parts.append(point[field])
    return "".join(parts)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")


def _unique(what: str, texts: list[str]) -> None:
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise ValueError(
                f"two cells would have the {what} {text!r}: use every parameter, or {{i}}, in its template"
            )
        seen.add(text)
