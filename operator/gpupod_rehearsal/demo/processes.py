"""Child processes of the demo: started in their own session, ended by us alone, whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from gpupod_rehearsal.controlplane import leash


class StartFailed(RuntimeError):
    """A part of the world did not come up; the message names it and its log."""


class Child:
    """One process with its log file."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        self._process.kill()

    async def wait(self) -> int:
        return await self._process.wait()

    async def end(self, grace: float = 20.0) -> None:
        """SIGTERM, `grace` seconds, SIGKILL."""
        if self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), grace)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


async def start(name: str, arguments: list[str], workdir: Path, *, env: dict[str, str] | None = None) -> Child:
    """Start a module of this Python; both outputs go to `<workdir>/<name>.log`."""
    log = workdir / f"{name}.log"
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            leash.__file__,
            str(os.getpid()),
            str(int(signal.SIGTERM)),
            sys.executable,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    return Child(name, process, log)


async def announced(child: Child, *, within: float = 60.0) -> dict[str, Any]:
    """The first JSON line of a child's log: what it serves where. Raises StartFailed."""
    async with asyncio.timeout(within):
        while True:
            for line in child.log.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("{") and '"url"' in line:
                    return dict(json.loads(line))
            if child.returncode is not None:
                tail = child.log.read_text(encoding="utf-8", errors="replace")[-800:]
                raise StartFailed(f"{child.name} ended with code {child.returncode}: {tail}")
            await asyncio.sleep(0.05)
