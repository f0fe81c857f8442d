"""Globs, walking, hashing, and the kept manifest."""

from __future__ import annotations

import hashlib
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gpupod_cell.globs import matches
from gpupod_cell.keeping import kept_or_taken
from gpupod_cell.layout import Layout
from gpupod_cell.manifest import blob_id, read, take, unchanged
from gpupod_cell.orders import Artifact, Destination, Order
from gpupod_cell.refusal import Refusal
from gpupod_cell.walk import MAX_ENTRIES, walk

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def _order(base: Path, **changes: Any) -> Order:
    artifact = Artifact("out", str(base / "out"), changes.pop("files", None), changes.pop("include", None), 1)
    return Order(
        uid="u1",
        name="c1",
        namespace="team",
        sweep="s",
        state="Pending",
        done_file=str(base / "DONE"),
        artifacts=(artifact,),
        destination=Destination("ada/s", "dataset", "main", "p"),
        token_from="Secret",
        progress_deadline=60,
        manifest=None,
        commit=None,
    )


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "out" / "deep").mkdir(parents=True)
    (tmp_path / "out" / "a.json").write_bytes(b"one")
    (tmp_path / "out" / "deep" / "b.bin").write_bytes(b"two")
    (tmp_path / "out" / "empty.txt").write_bytes(b"")
    (tmp_path / "DONE").write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "pattern", "meant"),
    [
        ("a.json", "*.json", True),
        ("deep/er/a.json", "*.json", True),
        ("a.jsonl", "*.json", False),
        ("deep/a.json", "deep/*.json", True),
        ("deep/er/a.json", "deep/*.json", False),
        ("deep/er/a.json", "deep/**/*.json", True),
        ("deep/a.json", "deep/**/*.json", True),
        ("a.json", "**/*.json", True),
        ("x/y/z", "**", True),
        ("x/y/z", "x/**", True),
        ("a1.bin", "a?.bin", True),
        ("a12.bin", "a?.bin", False),
        ("s3.bin", "s[0-9].bin", True),
        ("sx.bin", "s[!0-9].bin", True),
        ("s3.bin", "s[!0-9].bin", False),
        ("a.b", "a[.]b", True),
        ("axb", "a.b", False),
        ("a+b(c).txt", "a+b(c).txt", True),
        ("[x", "[x", True),
    ],
)
def test_a_glob_means_what_gitignore_would(path: str, pattern: str, meant: bool) -> None:
    assert matches(path, pattern) is meant


def test_the_hashes_are_the_ones_git_and_the_hub_show(base: Path) -> None:
    manifest = take(_order(base), walk(_order(base)), pod_id="p", attempt="a", now=lambda: NOW)
    assert [file.path for file in manifest.files] == ["out/a.json", "out/deep/b.bin", "out/empty.txt"]
    for file in manifest.files:
        data = (base / file.path).read_bytes()
        git = subprocess.run(["git", "hash-object", "--stdin"], input=data, capture_output=True, check=True)
        assert file.git_sha1 == git.stdout.decode().strip() == blob_id(data)
        assert file.sha256 == hashlib.sha256(data).hexdigest()


def test_a_manifest_is_canonical_and_reads_back(base: Path) -> None:
    manifest = take(_order(base), walk(_order(base)), pod_id="p", attempt="a", now=lambda: NOW)
    assert read(manifest.data) == manifest
    assert b": " not in manifest.data
    assert manifest.taken_at == "2026-12-01T00:00:00.000Z"


@pytest.mark.parametrize("data", [b"{}", b"[]", b"nonsense", b'{"format":2}', b'{"format":1,"cell":3}'])
def test_what_is_no_manifest_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        read(data)


def test_a_file_that_grows_while_it_is_read_is_refused(base: Path) -> None:
    seen = walk(_order(base))

    def grow(_: int) -> None:
        with (base / "out" / "a.json").open("ab") as file:
            file.write(b"more")

    with pytest.raises(Refusal) as refused:
        take(_order(base), seen, pod_id="p", attempt="a", now=lambda: NOW, progress=grow)
    assert refused.value.kind == "ChangedWhileReading"
    assert not unchanged(seen)


def test_a_file_replaced_by_one_of_equal_size_and_time_is_noticed(base: Path) -> None:
    seen = walk(_order(base))
    target = base / "out" / "a.json"
    info = target.stat()
    (base / "new").write_bytes(b"eno")
    os.utime(base / "new", ns=(info.st_atime_ns, info.st_mtime_ns))
    (base / "new").replace(target)
    assert not unchanged(seen)


def test_an_exact_set_takes_just_its_files_and_names_the_missing_one(base: Path) -> None:
    seen = walk(_order(base, files=("a.json",)))
    assert [found.path for found in seen.files] == ["out/a.json"]
    assert seen.problems == ()
    (problem,) = walk(_order(base, files=("a.json", "c.json"))).problems
    assert problem.kind == "FilesMissing"
    assert "c.json" in problem.message


def test_reserved_names_only_matter_where_they_would_be_taken(base: Path) -> None:
    (base / "out" / ".cache").mkdir()
    (base / "out" / ".cache" / "x.tmp").write_bytes(b"x")
    assert walk(_order(base, include=("*.json",))).problems == ()
    assert [problem.kind for problem in walk(_order(base)).problems] == ["ReservedName"]


def test_a_link_to_a_file_is_taken_as_its_content(base: Path) -> None:
    (base / "elsewhere").write_bytes(b"linked")
    (base / "out" / "link.json").symlink_to(base / "elsewhere")
    seen = walk(_order(base, include=("link.json",)))
    assert seen.problems == ()
    assert seen.files[0].stamp.size == 6


def test_more_entries_than_a_directory_may_have_are_refused(base: Path) -> None:
    for number in range(MAX_ENTRIES + 1):
        (base / "out" / f"f{number}").touch()
    assert "TooManyFiles" in [problem.kind for problem in walk(_order(base)).problems]


def test_the_manifest_is_kept_while_nothing_changes(base: Path) -> None:
    layout = Layout(base / ".gpupod", base / "shm")
    order = _order(base)

    def manifest(attempt: str = "a") -> str:
        at = datetime.now(UTC)
        return kept_or_taken(layout, order, walk(order), pod_id="p", attempt=attempt, now=lambda: at).digest

    first = manifest()
    assert manifest() == first
    assert manifest("b") != first
    again = manifest()
    (base / "out" / "a.json").write_bytes(b"new")
    assert manifest() != again


@pytest.mark.parametrize("damage", ["{half", "[]", '{"identity":1}', ""])
def test_a_damaged_kept_manifest_is_taken_anew(base: Path, damage: str) -> None:
    layout = Layout(base / ".gpupod", base / "shm")
    order = _order(base)
    layout.kept("u1").parent.mkdir(parents=True)
    layout.kept("u1").write_text(damage)
    manifest = kept_or_taken(layout, order, walk(order), pod_id="p", attempt="a", now=lambda: NOW)
    assert len(manifest.files) == 3
