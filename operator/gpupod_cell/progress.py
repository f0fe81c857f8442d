"""Signs of life of an upload, for the watchdog outside of it.

A hung upload is a process that lives with its sockets established and no bytes moving. Reads of files are seen from
outside (/proc/<pid>/io); bytes on sockets only from inside (TCP_INFO), so a thread writes them to a file.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
from pathlib import Path

EVERY_SECONDS = 1.0
_BYTES_ACKED_AT = 120
"""Offset of tcpi_bytes_acked and tcpi_bytes_received (two u64) in struct tcp_info, Linux 4.1 and newer."""


class Marks:
    """Writes a line to `path` whenever anything has moved. `path` None: marks nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._hashed = 0
        self._written = ""
        self._stop = threading.Event()
        if path is not None:
            threading.Thread(target=self._watch, name="progress", daemon=True).start()

    def hashed(self, count: int) -> None:
        """`count` more bytes of the cell were hashed."""
        self._hashed += count

    def close(self) -> None:
        self._stop.set()

    def _watch(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            self._mark()

    def _mark(self) -> None:
        if self._path is None:
            return
        line = f"{self._hashed} {socket_bytes()}"
        if line != self._written:
            self._path.write_text(line)
            self._written = line


def socket_bytes() -> int:
    """Bytes acknowledged and received on the TCP sockets this process has open. Reads no file (see `file_bytes`)."""
    total = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names only, once a second
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                total += _tcp_bytes(int(name))
        except OSError:
            # Closed since it was listed, or not TCP: it says nothing, and the sum changes, which counts as movement.
            continue
    return total


def file_bytes(pid: int) -> int | None:
    """Bytes the process has read through read(2), None when that cannot be known."""
    try:
        text = Path(f"/proc/{pid}/io").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("rchar:"):
            return int(line.split(":")[1])
    return None


def _tcp_bytes(fd: int) -> int:
    with socket.socket(fileno=os.dup(fd)) as copy:
        if copy.type != socket.SOCK_STREAM or copy.family not in (socket.AF_INET, socket.AF_INET6):
            return 0
        info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    if len(info) < _BYTES_ACKED_AT + 16:
        return 0
    acked, received = struct.unpack_from("QQ", info, _BYTES_ACKED_AT)
    return int(acked + received)
