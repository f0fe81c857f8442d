"""Starts operators in a tenth of a second: a process that has imported everything forks them, one after the other.

The parent writes a line of JSON (`folder`, `arguments`, `env`, `log`), and reads a line with the pid, and one with the
exit code as `waitpid` has it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gpupod_rehearsal.controlplane import leash

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
TESTS = Path(__file__).parents[1]


class Forks:
    """`with Forks() as forks:`. Of its operators one lives at a time."""

    def __enter__(self) -> Self:
        kept = [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), str(int(signal.SIGKILL))]
        self._server = subprocess.Popen(
            [*kept, sys.executable, "-m", "mortalkit.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=TESTS,
            text=True,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._server.kill()
        self._server.communicate()

    async def start(self, folder: Path, arguments: list[str], env: dict[str, str], log: Path) -> None:
        """A new operator."""
        order = {"folder": str(folder), "arguments": arguments, "env": env, "log": str(log)}
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        self._pid = await self._answer()
        self._ending = asyncio.create_task(self._answer())

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        if not self._ending.done():
            # it may have ended this moment, and the line that says so is still on its way
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    async def ended(self) -> int:
        """The exit code of the operator once it ended; minus a number: that signal."""
        return os.waitstatus_to_exitcode(await self._ending)

    async def _answer(self) -> int:
        assert self._server.stdout is not None
        line = await asyncio.to_thread(self._server.stdout.readline)
        assert line, "the forking process ended"
        return int(line)


def _operator(order: dict[str, Any]) -> None:
    """In the new process: become an operator that dies with the forking process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    os.setsid()
    os.environ |= order["env"]
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, log, log)):
        os.dup2(file, number)
    from mortalkit.fate import main

    main(Path(order["folder"]), order["arguments"])


def serve() -> None:
    import mortalkit.fate  # noqa: F401 - what takes the time, once

    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _operator(json.loads(line))
            sys.exit(0)
        print(pid, flush=True)
        print(os.waitpid(pid, 0)[1], flush=True)


if __name__ == "__main__":
    serve()
