"""The scripts with the tools that a small image has: no Python, no setsid, busybox."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from gpupod_operator.shell.agent import install_payload, install_script
from gpupod_operator.shell.launching import Launch, drain_script, launch_script
from gpupod_operator.shell.layout import PodLayout
from gpupod_operator.shell.reading import parse_visit, reading_script
from gpupod_operator.shell.tree import AgentTree

TOOLS = [
    *("sh", "cat", "chmod", "cut", "date", "dd", "dirname", "grep", "head", "ln", "mkdir", "mv"),
    *("rm", "sed", "setsid", "sleep", "tail", "tar", "tr", "wc"),
]
SETTINGS = {"hubEndpoint": None, "tokens": {}, "attempt": "a1", "podId": "pod1"}


@pytest.fixture
def layout(tmp_path: Path) -> PodLayout:
    (tmp_path / "work").mkdir()
    return PodLayout(str(tmp_path / "work" / ".gpupod"), str(tmp_path / "shm"), str(tmp_path / "work"))


def _tools(folder: Path, *without: str) -> str:
    """A PATH with just these tools and no Python."""
    folder.mkdir()
    for tool in set(TOOLS) - set(without):
        found = shutil.which(tool, path="/usr/bin:/bin")
        assert found is not None, tool
        (folder / tool).symlink_to(found)
    return str(folder)


def _run(script: str, path: str, payload: bytes = b"") -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", script], input=payload, env={"PATH": path}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


needs_a_bare_machine = pytest.mark.skipif(
    any(Path(known).exists() for known in ("/opt/conda/bin/python", "/usr/local/bin/python3")),
    reason="this machine has a Python where images often have theirs",
)


@needs_a_bare_machine
def test_a_pod_without_python_gets_the_tree_and_says_what_is_missing(layout: PodLayout, tmp_path: Path) -> None:
    tree, path = AgentTree.load(), _tools(tmp_path / "bin")
    answer = _run(install_script(layout, tree, SETTINGS), path, install_payload(tree, SETTINGS))
    assert answer.strip() == "NOPYTHON"
    visit = parse_visit(_run(reading_script(layout), path).encode())
    assert visit.agent is not None
    assert visit.agent.running is False
    assert "add them to the image" in (visit.agent.problem or "")
    assert visit.agent.tree_hash == tree.hash


@needs_a_bare_machine
def test_a_pod_with_neither_tar_nor_python_is_named(layout: PodLayout, tmp_path: Path) -> None:
    tree = AgentTree.load()
    answer = _run(
        install_script(layout, tree, SETTINGS), _tools(tmp_path / "bin", "tar"), install_payload(tree, SETTINGS)
    )
    assert answer.startswith("FAILED neither tar nor Python")


def test_input_cut_before_the_tokens_end_installs_nothing(layout: PodLayout, tmp_path: Path) -> None:
    tree = AgentTree.load()
    answer = _run(install_script(layout, tree, SETTINGS), _tools(tmp_path / "bin"), b"uid-1 hf_x")
    assert answer.startswith("FAILED the input was cut short")
    assert not Path(layout.root, "agent", "VERSION").exists()


def test_a_launch_and_a_drain_need_no_python(layout: PodLayout, tmp_path: Path) -> None:
    path = _tools(tmp_path / "bin")
    # Neither `timeout` nor `true` are among the tools; a shell is.
    launch = Launch("a1", "l1", "pod1", "t0", ["sleep", "600"], ["sh", "-c", ":"], None)
    assert _run(launch_script(layout, launch, check_seconds=5), path).strip() == "STARTED"
    visit = parse_visit(_run(reading_script(layout), path).encode())
    assert visit.launches is not None
    assert visit.launches[0].alive is True
    assert _run(drain_script(layout, "a1", 5), path).strip() == "ENDED"


def test_an_image_without_setsid_is_refused_by_name(layout: PodLayout, tmp_path: Path) -> None:
    launch = Launch("a1", "l1", "pod1", "t0", ["true"], (), None)
    answer = _run(launch_script(layout, launch, check_seconds=5), _tools(tmp_path / "bin", "setsid"))
    assert answer.startswith("UNKNOWN setsid")


@pytest.mark.skipif(shutil.which("busybox") is None, reason="needs busybox")
def test_busybox_is_enough(layout: PodLayout, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(str(shutil.which("busybox")))
    launch = Launch("a1", "l1", "pod1", "t0", ["sleep", "600"], (), None)
    assert _run(launch_script(layout, launch, check_seconds=5), str(folder)).strip() == "STARTED"
    assert _run(drain_script(layout, "a1", 5), str(folder)).strip() == "ENDED"


def test_a_launch_lock_left_by_a_dead_process_does_not_block(layout: PodLayout, tmp_path: Path) -> None:
    path = _tools(tmp_path / "bin")
    Path(layout.root).mkdir()
    Path(layout.root, "launching").write_text(f"{os.getpid()} 1\n")
    launch = Launch("a1", "l1", "pod1", "t0", ["true"], (), None)
    assert _run(launch_script(layout, launch, check_seconds=5), path).startswith(
        ("STARTED", "UNKNOWN the workload ended")
    )
    assert not Path(layout.root, "launching").exists()


def test_the_tree_is_the_same_each_time_and_names_its_content() -> None:
    first, second = AgentTree.load(), AgentTree.load()
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first.tar)) as tar:
        names = tar.getnames()
        version = tar.extractfile("VERSION")
        assert version is not None
        assert version.read().decode().strip() == first.hash
    assert "gpupod_cell/bootstrap.py" in names
    assert "gpupod_cell/__main__.py" in names


def test_the_launch_record_is_one_json_object(layout: PodLayout, tmp_path: Path) -> None:
    launch = Launch("a1", "l1", "pod1", "t0", ["sh", "-c", "echo \"q\" 's' %s \\n"], (), "out.log")
    _run(launch_script(layout, launch, check_seconds=5), _tools(tmp_path / "bin"))
    record = json.loads(Path(layout.root, "a1", "launch.json").read_text())
    assert record["command"] == ["sh", "-c", "echo \"q\" 's' %s \\n"]
    assert record["logFile"] == f"{layout.work}/out.log"
