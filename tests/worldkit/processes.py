"""What any person on this machine can read of its processes: their arguments and their environment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

PROC = Path("/proc")


def processes_show(secrets: Iterable[str], persons: Sequence[str] = (), proc: Path = PROC) -> list[str]:
    """A sentence per process that shows one of these secrets; empty where there is no /proc.

    All processes are read, not only children: what was started detached on a pod has no parent any more. Programs
    whose path begins as one of `persons` are tools in somebody's own hands.
    """
    wanted = [secret.encode() for secret in secrets]
    found = []
    for folder in sorted(proc.glob("[0-9]*")):
        if any(_name(folder).startswith(tool) for tool in persons):
            continue
        for name in ("cmdline", "environ"):
            content = _read(folder / name)
            if any(secret in content for secret in wanted):
                found.append(f"I8: a secret is in the {name} of process {folder.name}: {_name(folder)}")
    return found


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""  # it ended meanwhile, or it is somebody else's


def _name(folder: Path) -> str:
    return " ".join(_read(folder / "cmdline").decode(errors="replace").split("\0")[:3])
