"""The simulated Hub's `.gitignore` and `.gitattributes` agree with git itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpupod_rehearsal.hub.gitpatterns import DEFAULT_GITATTRIBUTES, is_ignored, is_lfs

RULES = ["*.log", "!keep.log", "build/", "/top.txt", "docs/*.md", "**/cache", "a/**/z", "x?.bin", "[ab].dat", "foo/**"]
PATHS = [
    *("a.log", "d/keep.log", "d/a.log", "build/x", "d/build/x", "build", "top.txt", "d/top.txt", "docs/r.md"),
    *("docs/d/r.md", "d/docs/r.md", "cache", "d/cache/f", "a/z", "a/b/c/z", "a/b/y", "x1.bin", "x12.bin", "d/xy.bin"),
    *("a.dat", "c.dat", "foo/bar", "foo", "keep.log", "build/keep.log"),
]


@pytest.mark.parametrize("rules", [RULES, ["*", "!*.json"], ["# a comment", "", "c*"]])
def test_ignored_as_git_ignores(tmp_path: Path, rules: list[str]):
    gitignore = "\n".join(rules) + "\n"
    (tmp_path / ".gitignore").write_text(gitignore)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    answer = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=tmp_path,
        input="\n".join(PATHS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert [path for path in PATHS if is_ignored(path, gitignore)] == answer.stdout.splitlines()


@pytest.mark.parametrize(
    ("path", "lfs"),
    [
        *(("m.safetensors", True), ("d/e/m.pt", True), ("x.json", False), ("x.tar.gz", True), ("x.csv", False)),
        *(("saved_model/a/b", True), ("d/saved_model/a", False), ("events.out.tfevents.1", True), ("noext", False)),
    ],
)
def test_default_lfs_patterns(path: str, lfs: bool):
    assert is_lfs(path, DEFAULT_GITATTRIBUTES) is lfs


def test_a_later_line_takes_a_path_out_of_lfs():
    assert is_lfs("a.bin", "*.bin filter=lfs -text\n")
    assert not is_lfs("a.bin", "*.bin filter=lfs -text\na.bin -filter\n")
