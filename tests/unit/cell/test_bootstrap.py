"""Which Python runs the agent, and what is said where none can."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpupod_cell import bootstrap


def _python(path: Path, script: str) -> str:
    """A program in the place of an interpreter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def candidates(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(bootstrap, "_candidates", lambda: found)
    monkeypatch.setattr(bootstrap.time, "sleep", lambda _: None)
    return found


def test_a_python_that_has_the_library_is_taken_as_it_is(tmp_path: Path, candidates: list[str]) -> None:
    candidates.append(sys.executable)
    assert bootstrap.find_python(str(tmp_path), log=lambda _: None) == (sys.executable, "")


def test_a_venv_made_before_goes_first(tmp_path: Path, candidates: list[str]) -> None:
    candidates.append(sys.executable)
    ready = _python(tmp_path / "venv" / "bin" / "python", "exit 0")
    assert bootstrap.find_python(str(tmp_path), log=lambda _: None)[0] == ready


def test_only_an_old_python_is_named_with_the_remedy(tmp_path: Path, candidates: list[str]) -> None:
    candidates.append(_python(tmp_path / "old", "echo python is 3.8; exit 1"))
    python, problem = bootstrap.find_python(str(tmp_path), log=lambda _: None)
    assert python is None
    assert "python is 3.8" in problem
    assert "add it to the image" in problem


def test_a_venv_that_cannot_be_made_is_named_with_the_remedy(tmp_path: Path, candidates: list[str]) -> None:
    # New enough (the short probe passes), without the library, and pip finds no network.
    script = 'case "$2" in *huggingface_hub*) echo no module; exit 1 ;; esac\n'
    script += 'if [ "$1" = -c ]; then exit 0; fi\necho "no network here"; exit 1'
    candidates.append(_python(tmp_path / "bare", script))
    python, problem = bootstrap.find_python(str(tmp_path), log=lambda _: None)
    assert python is None
    assert "no network here" in problem
    assert bootstrap.HUB_PIN in problem
    assert not (tmp_path / "venv").exists()
    assert not (tmp_path / "venv.new").exists()


def test_a_failure_is_reported_in_the_state_file_and_keeps_the_cells(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agent.mkdir()
    (agent / "state.json").write_text(json.dumps({"format": 1, "agent": {}, "cells": {"u": {"state": "Uploaded"}}}))
    code = (
        f"import sys; sys.path.insert(0, {str(Path(bootstrap.__file__).parent)!r}); import bootstrap\n"
        "bootstrap.find_python = lambda root: (None, 'nothing fits')\n"
        f"sys.argv = ['bootstrap', '--root', {str(tmp_path)!r}]\nsys.exit(bootstrap.main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 1
    state = json.loads((agent / "state.json").read_text())
    assert state["agent"]["problem"] == "nothing fits"
    assert state["agent"]["pid"] is None
    assert state["cells"] == {"u": {"state": "Uploaded"}}


def test_the_file_runs_under_an_old_python() -> None:
    import ast

    source = Path(bootstrap.__file__).read_text()
    ast.parse(source, feature_version=(3, 6))
    assert "__future__" not in source


def test_the_agent_parses_under_the_oldest_python_it_promises() -> None:
    import ast

    files = list(Path(bootstrap.__file__).parent.glob("*.py"))
    assert len(files) > 20
    for path in files:
        ast.parse(path.read_text(), feature_version=(3, 10))
