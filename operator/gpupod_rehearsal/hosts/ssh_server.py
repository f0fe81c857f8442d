"""The SSH server of a pod on machines without OpenSSH's: asyncssh, run by file path inside the pod's namespaces.

One argument: a JSON file with `address`, `port`, `host_key`, `authorized_keys`. Sessions get bash as from sshd.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import sys
from pathlib import Path
from typing import Any

import asyncssh

_SHELL = "/bin/bash"
_ENV = {
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "SHELL": _SHELL,
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}


async def main(spec: dict[str, Any]) -> None:
    """Listen until killed."""
    async with asyncssh.listen(
        spec["address"],
        spec["port"],
        server_host_keys=[spec["host_key"]],
        server_factory=_RootOnly,
        authorized_client_keys=spec["authorized_keys"],
        process_factory=_session,
        sftp_factory=True,
        allow_scp=True,
        encoding=None,
        reuse_address=True,
    ) as server:
        await server.wait_closed()


class _RootOnly(asyncssh.SSHServer):
    """Root with a public key, as in the vendor's images."""

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        return True

    def password_auth_supported(self) -> bool:
        return False

    def server_requested(self, listen_host: str, listen_port: int) -> bool:  # noqa: ARG002
        return False

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:  # noqa: ARG002
        return True


async def _session(process: asyncssh.SSHServerProcess[bytes]) -> None:
    peer = process.get_extra_info("peername") or ("127.0.0.1", 0)
    here = process.get_extra_info("sockname") or ("127.0.0.1", 22)
    env = {**_ENV, "SSH_CLIENT": f"{peer[0]} {peer[1]} {here[1]}"}
    command = [_SHELL, "-c", process.command] if process.command else ["-bash"]
    kind = process.get_terminal_type()
    if kind is not None:
        await _with_terminal(process, command, {**env, "TERM": kind})
        return
    child = await asyncio.create_subprocess_exec(
        *command,
        executable=_SHELL,
        env=env,
        cwd="/root",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    if child.stdin is None or child.stdout is None or child.stderr is None:
        raise RuntimeError("a child without pipes")
    feeding = asyncio.create_task(_feed(process.stdin, child.stdin))
    await asyncio.gather(_pump(child.stdout, process.stdout), _pump(child.stderr, process.stderr))
    _leave(process, await child.wait())
    feeding.cancel()


async def _feed(source: asyncssh.SSHReader[bytes], sink: asyncio.StreamWriter) -> None:
    """Carry input; a command that ends without reading all of it is no fault of the connection, as sshd has it."""
    with contextlib.suppress(OSError, asyncssh.Error):
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
        sink.close()


async def _pump(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
    """Carry output to its end, as sshd does: the exit status follows the last byte, and a lost client stops nothing."""
    while chunk := await source.read(65536):
        with contextlib.suppress(OSError, asyncssh.Error):
            sink.write(chunk)
            await sink.drain()


async def _with_terminal(process: asyncssh.SSHServerProcess[bytes], command: list[str], env: dict[str, str]) -> None:
    master, slave = pty.openpty()
    child = await asyncio.create_subprocess_exec(
        "/usr/bin/setsid",
        "--ctty",
        "--wait",
        _SHELL,
        *(command[1:] or ["-l"]),
        env=env,
        cwd="/root",
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    await process.redirect(stdin=os.dup(master))
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(master, "rb", buffering=0)
    )
    # A terminal ends with an input error once its last process is gone.
    with contextlib.suppress(OSError):
        await _pump(reader, process.stdout)
    _leave(process, await child.wait())
    transport.close()


def _leave(process: asyncssh.SSHServerProcess[bytes], code: int) -> None:
    if code < 0:
        process.exit_with_signal("KILL" if code == -9 else "TERM")
    else:
        process.exit(code)


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
