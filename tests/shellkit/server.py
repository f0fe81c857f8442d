"""A real OpenSSH server on a loopback port, its "pod" a folder; and where it is missing, asyncssh's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import asyncssh

from gpupod_operator.core.shell import ShellTarget
from gpupod_operator.shell import AsyncsshShell, ShellTimeouts, generate_key_pair
from gpupod_operator.shell.layout import PodLayout

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin:/usr/bin")
SESSION_PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
"""The interpreter of the tests comes first: like a pod whose image has huggingface_hub."""

FAST = ShellTimeouts(connect=3, login=5, command=20, check=10, transfer=20)


class StoppedClock:
    def now(self) -> datetime:
        return datetime(2026, 12, 1, tzinfo=UTC)


@dataclass
class PodServer:
    """Where to log in, with what, and the pod's folders as seen from outside."""

    home: Path
    port: int
    private: str
    host_key: str
    layout: PodLayout

    def target(self, host_key: str | None = None) -> ShellTarget:
        return ShellTarget("pod1", "127.0.0.1", self.port, host_key, user=_user())

    def shell(self, timeouts: ShellTimeouts = FAST) -> AsyncsshShell:
        return AsyncsshShell(StoppedClock(), timeouts=timeouts, layout=self.layout)

    @property
    def root(self) -> Path:
        return Path(self.layout.root)


def prepare(home: Path) -> PodServer:
    """Keys and folders, no server yet."""
    private, public = generate_key_pair()
    host_private, host_public = generate_key_pair("host")
    (home / "host_key").write_text(host_private)
    (home / "host_key").chmod(0o600)
    (home / "authorized_keys").write_text(public + "\n")
    work = home / "workspace"
    work.mkdir()
    layout = PodLayout(str(work / ".gpupod"), str(home / "shm"), str(work))
    return PodServer(home, free_port(), private, " ".join(host_public.split()[:2]), layout)


async def start_sshd(pod: PodServer) -> subprocess.Popen[bytes]:
    """OpenSSH, logging to `sshd.log`; only for root, as on a rented pod."""
    assert SSHD is not None
    Path("/run/sshd").mkdir(exist_ok=True)
    settings = {
        "ListenAddress": f"127.0.0.1:{pod.port}",
        "HostKey": pod.home / "host_key",
        "AuthorizedKeysFile": pod.home / "authorized_keys",
        "PidFile": "none",
        "UsePAM": "no",
        "StrictModes": "no",
        "PermitRootLogin": "yes",
        "PasswordAuthentication": "no",
        # The account's own start-up files would put other interpreters first, one of them without huggingface_hub.
        "SetEnv": f"PATH={SESSION_PATH} HOME={pod.home} GPUPOD_TEST_HOME={pod.home}",
    }
    (pod.home / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    command = [SSHD, "-D", "-e", "-f", str(pod.home / "sshd_config")]
    with (pod.home / "sshd.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL)
    await _listening(pod.port)
    return process


@asynccontextmanager
async def run_asyncssh(pod: PodServer) -> AsyncIterator[None]:
    """asyncssh's server, running commands through the shell."""

    running: set[asyncio.subprocess.Process] = set()

    async def serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
        ran = await asyncio.create_subprocess_shell(
            process.command or "true",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": SESSION_PATH, "HOME": str(Path.home()), "GPUPOD_TEST_HOME": str(pod.home)},
        )
        running.add(ran)
        assert ran.stdin is not None and ran.stdout is not None and ran.stderr is not None
        feeding = asyncio.create_task(_feed(process.stdin, ran.stdin))
        await asyncio.gather(_pump(ran.stdout, process.stdout), _pump(ran.stderr, process.stderr))
        process.exit(await ran.wait())
        feeding.cancel()
        running.discard(ran)
        await process.wait_closed()

    acceptor = await asyncssh.listen(
        "127.0.0.1",
        pod.port,
        server_host_keys=[str(pod.home / "host_key")],
        authorized_client_keys=str(pod.home / "authorized_keys"),
        process_factory=serve,
        encoding=None,
    )
    try:
        yield
    finally:
        acceptor.close()
        for left in tuple(running):
            left.kill()
            await left.wait()
        await acceptor.wait_closed()


async def _feed(source: asyncssh.SSHReader[bytes], sink: asyncio.StreamWriter) -> None:
    """A command that ends without reading all of its input is no fault of the connection, as sshd has it."""
    with contextlib.suppress(OSError, asyncssh.Error):
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
        sink.close()


async def _pump(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
    """The exit status follows the last byte of output."""
    while chunk := await source.read(65536):
        with contextlib.suppress(OSError, asyncssh.Error):
            sink.write(chunk)
            await sink.drain()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _listening(port: int) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


def _user() -> str:
    return "root" if os.getuid() == 0 else os.environ.get("USER", "nobody")
