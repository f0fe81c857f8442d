"""What the kernel knows of a process: resident memory and CPU time."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory in MB (10^6 bytes), CPU in seconds since the start of the process."""

    rss: float
    peak: float
    cpu: float


def usage(pid: int) -> Usage:
    """Raises FileNotFoundError once the process is gone."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # utime and stime: fields 14 and 15 of proc(5), the first two stand before the split
    cpu = (int(fields[11]) + int(fields[12])) / _TICKS
    return Usage(_mb(status["VmRSS"]), _mb(status["VmHWM"]), cpu)


def _mb(text: str) -> float:
    return int(text.split(maxsplit=1)[0]) * 1024 / 1e6
