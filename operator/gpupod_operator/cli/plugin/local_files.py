"""Changes of a person's files: under a lock, in one step, with the mode they have."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from gpupod_operator.cli.plugin.failure import Failed

Change = Callable[[str], str]
"""The new text from the present one (empty for a file that is not there). Raises ValueError for one it cannot take."""

PRIVATE = 0o600
PUBLIC = 0o644


def change(path: Path, make: Change, *, mode: int) -> bool:
    """Whether the file was changed. `mode` is for a new one. Raises Failed and then leaves the file as it is."""
    # a linked dotfile stays a link
    real = path.expanduser().resolve()
    try:
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(real):
            before = _read(real)
            after = _made(path, make, before or "")
            if after == before or (before is None and not after):
                return False
            _replace(real, after, mode if before is None else real.stat().st_mode & 0o777)
            return True
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}") from None


def differs(path: Path, make: Change) -> bool:
    """Whether `change` would change the file."""
    try:
        before = _read(path.expanduser().resolve())
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}") from None
    after = _made(path, make, before or "")
    return after != before and not (before is None and not after)


def _made(path: Path, make: Change, before: str) -> str:
    try:
        return make(before)
    except ValueError as error:
        raise Failed(f"{path} is left alone: {error}") from None


def _read(path: Path) -> str | None:
    try:
        # other people's bytes come back as they were
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Two syncs at once take turns. The lock ends with the process, however it ends."""
    with (path.parent / f".{path.name}.gpupod.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _replace(path: Path, text: str, mode: int) -> None:
    """A reader sees the old file or the new one, also after a power cut."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
