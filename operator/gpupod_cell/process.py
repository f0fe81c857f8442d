"""Processes as the kernel knows them: a pid means something only together with its start time."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def start_of(pid: int) -> int | None:
    """Start time in clock ticks since boot (field 22 of /proc/<pid>/stat); None for no such process, or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold spaces and parentheses itself.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, so that no upload goes on without its loop."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        # The parent went before the order was in place.
        raise SystemExit(1)
