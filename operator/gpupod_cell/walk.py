"""What a cell consists of on disk, and what of it cannot be taken.

huggingface_hub's own folder upload drops symlinked directories, dangling links and ignored names without a word; this
walker names each of them, so that a cell is whole or refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpupod_cell.globs import matches
from gpupod_cell.orders import Artifact, Order

MAX_ENTRIES = 10_000
"""Files the Hub accepts in one directory; a cell with more in all is refused before anything is sent."""

RESERVED = (".git", ".cache")
"""Path segments that the Hub client refuses in a repository path."""


@dataclass(frozen=True)
class Stamp:
    """What changes when a file is written."""

    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int

    @classmethod
    def of(cls, info: os.stat_result) -> Stamp:
        return cls(info.st_size, info.st_mtime_ns, info.st_ino, info.st_ctime_ns)


@dataclass(frozen=True)
class Found:
    """A file to take. `path` is relative to the destination: `<artifact>/<path below the artifact>`."""

    artifact: str
    path: str
    source: Path
    stamp: Stamp


@dataclass(frozen=True)
class Problem:
    """Something that keeps the cell from being taken; `kind` is one word, `message` says what to change."""

    kind: str
    message: str


@dataclass(frozen=True)
class Walk:
    """`done` is None while there is no done file; `stale` names a file written after it."""

    done: Stamp | None
    files: tuple[Found, ...]
    problems: tuple[Problem, ...]
    stale: str | None = None


def walk(order: Order) -> Walk:
    """Look at the cell on disk. Never raises for what it finds there."""
    done = stamp(Path(order.done_file))
    files: list[Found] = []
    problems: list[Problem] = []
    for artifact in order.artifacts:
        _artifact(artifact, files, problems)
    if len(files) > MAX_ENTRIES:
        problems.append(
            Problem("TooManyFiles", f"{len(files)} files; at most {MAX_ENTRIES} fit into one cell: pack or split it")
        )
    files.sort(key=lambda found: found.path)
    stale = None
    if done is not None:
        stale = next((str(f.source) for f in files if f.stamp.mtime_ns > done.mtime_ns), None)
    return Walk(done, tuple(files), tuple(problems), stale)


def stamp(path: Path) -> Stamp | None:
    """The stamp of a regular file (links followed), None when there is none."""
    try:
        info = path.stat()
    except OSError:
        return None
    return Stamp.of(info) if stat.S_ISREG(info.st_mode) else None


def _artifact(artifact: Artifact, files: list[Found], problems: list[Problem]) -> None:
    root = Path(artifact.path)
    if not os.path.lexists(root):
        problems.append(Problem("PathMissing", f"artifact {artifact.name}: {root} does not exist"))
        return
    if root.is_symlink() and root.is_dir():
        problems.append(
            Problem(
                "SymlinkedDirectory",
                f"artifact {artifact.name}: {root} is a link to a directory; name the directory itself",
            )
        )
        return
    before = len(files)
    if artifact.files is not None:
        for relative in artifact.files:
            _take(artifact, root / relative, relative, files, problems)
        return
    if root.is_dir():
        for source, relative, problem in _entries(root):
            if problem is not None and problem.kind == "SymlinkedDirectory":
                problems.append(problem)
            elif artifact.include is None or any(matches(relative, glob) for glob in artifact.include):
                if problem is not None:
                    problems.append(problem)
                else:
                    _take(artifact, source, relative, files, problems)
            if len(files) > MAX_ENTRIES:
                return
    else:
        _take(artifact, root, root.name, files, problems)
    least = artifact.min_files if artifact.min_files is not None else 1
    if len(files) - before < least:
        what = ", ".join(artifact.include or ("any file",))
        problems.append(
            Problem(
                "FilesMissing",
                f"artifact {artifact.name}: {len(files) - before} files match {what} below {root}; {least} are needed",
            )
        )


def _entries(root: Path, below: str = "") -> Iterator[tuple[Path, str, Problem | None]]:
    try:
        with os.scandir(root) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        yield root, below.rstrip("/"), Problem("Unreadable", f"{root} cannot be listed: {error.strerror}")
        return
    for entry in entries:
        relative = below + entry.name
        path = root / entry.name
        if entry.is_symlink() and entry.is_dir():
            text = f"{path} is a link to a directory; its files would be left out silently"
            yield path, relative, Problem("SymlinkedDirectory", text)
        elif entry.is_dir(follow_symlinks=False):
            yield from _entries(path, relative + "/")
        else:
            yield path, relative, None


def _take(artifact: Artifact, source: Path, relative: str, files: list[Found], problems: list[Problem]) -> None:
    problem = None
    if any(part in RESERVED for part in relative.split("/")):
        problem = Problem("ReservedName", f"{source}: the Hub takes no path with a segment {' or '.join(RESERVED)}")
    elif source.is_symlink() and not source.exists():
        problem = Problem("DanglingLink", f"{source} is a link to nothing")
    elif not source.exists():
        problem = Problem("FilesMissing", f"artifact {artifact.name}: {source} does not exist")
    elif not source.is_file():
        problem = Problem("NotAFile", f"{source} is neither a file nor a directory")
    elif not os.access(source, os.R_OK):
        problem = Problem("Unreadable", f"{source} cannot be read by this user")
    if problem is not None:
        problems.append(problem)
        return
    seen = stamp(source)
    if seen is None:
        problems.append(Problem("FilesMissing", f"artifact {artifact.name}: {source} went away while it was looked at"))
    else:
        files.append(Found(artifact.name, f"{artifact.name}/{relative}", source, seen))
