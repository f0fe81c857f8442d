"""A base image without a registry: Debian with Python, made by debootstrap once and kept in the user's cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUITE = "bookworm"
PACKAGES = ("python3", "python3-venv", "python3-pip", "ca-certificates")


class NoBase(RuntimeError):
    """debootstrap ran and failed; the message has the end of its output."""


def cache() -> Path:
    """`$XDG_CACHE_HOME/gpupod/image`, made where it is missing."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "gpupod" / "image"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def why_not() -> str | None:
    """Why no base can be made here, or None."""
    if (cache() / f"{SUITE}.tar").is_file():
        return None
    if os.geteuid() != 0:
        return "debootstrap makes the base image and needs root"
    if shutil.which("debootstrap") is None:
        return "no debootstrap to make a base image (apt-get install debootstrap), and GPUPOD_IMAGE_BASE names none"
    return None


def base_tar() -> Path:
    """The root file system as a tar file. Takes a minute the first time; two at once share one. Raises NoBase."""
    target = cache() / f"{SUITE}.tar"
    with _locked(target.with_suffix(".lock")):
        if not target.is_file():
            _make(target)
    return target


def _make(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="gpupod-base-") as folder:
        root = Path(folder) / "root"
        order = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(root)]
        done = subprocess.run(order, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NoBase(f"debootstrap failed: {(done.stdout + done.stderr)[-800:]}")
        for waste in (root / "var/cache/apt/archives", root / "var/lib/apt/lists"):
            shutil.rmtree(waste, ignore_errors=True)
        # A name of its own until it is whole: a run that was killed leaves no half base behind.
        part = target.with_suffix(f".{os.getpid()}.part")
        try:
            subprocess.run(["tar", "--one-file-system", "-C", str(root), "-cf", str(part), "."], check=True)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
