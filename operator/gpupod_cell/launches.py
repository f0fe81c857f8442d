"""Workloads that the operator launched on this pod, and how they are ended."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gpupod_cell.layout import read_json
from gpupod_cell.process import start_of


@dataclass(frozen=True)
class Launch:
    """A record as the launch wrote it; the process and whatever it started share the group."""

    pid: int
    proc_start: int
    group: int


def launch_of(root: Path, attempt: str, pod_started_at: str | None) -> Launch | None:
    """The launch of this attempt and this start of the pod.

    A volume carries the records of other pods and of earlier starts, whose pids mean nothing here.
    """
    try:
        value = read_json(root / attempt / "launch.json") or {}
        if value["podStartedAt"] not in (pod_started_at, ""):
            return None
        return Launch(int(value["pid"]), int(value["procStart"]), int(value["pgid"]))
    except (OSError, ValueError, KeyError, TypeError):
        # No process can be found by it; the operator says so when it reads the same file.
        return None


def ended_since(root: Path, since: datetime) -> bool:
    """A workload ended after this time, by the records of their supervisors and this pod's clock."""
    return any(path.stat().st_mtime > since.timestamp() for path in root.glob("*/exit.json"))


def members(launch: Launch) -> list[int]:
    """Living processes of the launch: its group, and what made itself a group in its session."""
    now = start_of(launch.pid)
    if now is not None and now != launch.proc_start:
        # A pid is not given away while a group has that number: another process there means that ours is gone.
        return []
    return [pid for pid in _pids() if launch.group in _group_and_session(pid)]


def end(launch: Launch, *, kill: bool) -> None:
    """SIGTERM to the group, or SIGKILL to everything that is left of it. Raises PermissionError."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(launch.group, signal.SIGKILL if kill else signal.SIGTERM)
        os.killpg(launch.group, signal.SIGCONT)
    if kill:
        for pid in members(launch):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _group_and_session(pid: int) -> tuple[int, ...]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ()
    fields = text.rpartition(")")[2].split()
    return () if fields[0] in ("Z", "X") else (int(fields[2]), int(fields[3]))
