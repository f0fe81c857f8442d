"""The `server` fixture: a pod one can log in to."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shellkit.server import SSHD, PodServer, prepare, run_asyncssh, start_sshd


@pytest.fixture(params=["openssh", "asyncssh"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PodServer]:
    pod = prepare(tmp_path)
    try:
        if request.param == "openssh":
            if SSHD is None or os.getuid() != 0:
                pytest.skip("needs OpenSSH's sshd (apt-get install openssh-server) and root")
            process = await start_sshd(pod)
            yield pod
            process.terminate()
            process.wait(10)
        else:
            async with run_asyncssh(pod):
                yield pod
    finally:
        _end_what_was_started(pod)


def _end_what_was_started(pod: PodServer) -> None:
    """Detached processes outlive their session by design; none may outlive the test."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if str(pod.layout.work).encode() in command + environment and int(folder.name) != os.getpid():
            try:
                os.kill(int(folder.name), signal.SIGKILL)
            except ProcessLookupError:
                continue
