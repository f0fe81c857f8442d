"""An upload in an interpreter of its own, watched for signs of life and killed when there are none."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpupod_cell.layout import Layout
from gpupod_cell.orders import Order
from gpupod_cell.progress import file_bytes
from gpupod_cell.settings import upload_environment

TAIL_BYTES = 2000


class Upload:
    """A running `once`. It dies with the loop that started it."""

    def __init__(self, layout: Layout, order: Order, *, no_xet: bool, began: float) -> None:
        self.order = order
        self.no_xet = no_xet
        self._marks = layout.secrets / "progress"
        self._marks.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._marks.unlink(missing_ok=True)
        self._out = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child, closed in `result`
        self._err = tempfile.TemporaryFile()  # noqa: SIM115
        self._seen: tuple[str, int | None] = ("", None)
        self._moved = began
        home = str(Path(__file__).resolve().parent.parent)
        environment = upload_environment(layout, no_xet=no_xet, base=os.environ)
        environment["PYTHONPATH"] = home
        environment["GPUPOD_SECRETS"] = str(layout.secrets)
        command = [sys.executable, "-m", "gpupod_cell", "--root", str(layout.root), "once", "--uid", order.uid]
        command += ["--orders", str(layout.accepted), "--marks", str(self._marks), "--parent", str(os.getpid())]
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self, timeout: float = 0) -> bool:
        """Whether it has ended, after waiting at most `timeout` seconds."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def quiet_for(self, monotonic: float) -> float:
        """Seconds since anything moved: bytes hashed, read, or on its sockets."""
        try:
            marks = self._marks.read_text()
        except FileNotFoundError:
            marks = ""
        seen = (marks, file_bytes(self._process.pid))
        if seen != self._seen:
            self._seen, self._moved = seen, monotonic
        return monotonic - self._moved

    def kill(self) -> None:
        """End it and everything it started."""
        # It may have ended by itself meanwhile; the wait below collects it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def result(self) -> tuple[int, dict[str, Any] | None, str]:
        """Exit code (negative: killed by that signal), the receipt if there is one, the tail of its errors."""
        code = self._process.wait()
        self._out.seek(0)
        lines = self._out.read().decode(errors="replace").splitlines()
        self._err.seek(0)
        tail = self._err.read().decode(errors="replace")[-TAIL_BYTES:]
        self._out.close()
        self._err.close()
        receipt = None
        for line in reversed(lines):
            if line.startswith("{"):
                try:
                    receipt = json.loads(line)
                except ValueError:
                    tail += " (unreadable receipt)"
                break
        return code, receipt, tail
