"""Servers that misbehave: each fault has its class, and none of them is taken for an answer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from gpupod_operator.core.shell import ShellTarget, SshClass
from gpupod_operator.ports import ShellError
from gpupod_operator.shell import AsyncsshShell, ShellTimeouts, generate_key_pair
from gpupod_operator.shell.layout import PodLayout
from shellkit.server import StoppedClock, free_port

SHORT = ShellTimeouts(connect=1, login=1, command=5, check=1, transfer=5)


def _shell() -> AsyncsshShell:
    return AsyncsshShell(StoppedClock(), timeouts=SHORT, layout=PodLayout())


def _target(port: int, host: str = "127.0.0.1") -> ShellTarget:
    return ShellTarget("pod1", host, port, None)


@asynccontextmanager
async def _tcp(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]) -> AsyncIterator[int]:
    writers: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        serve(reader, writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def _ssh(
    tmp_path: Path, handle: Callable[[asyncssh.SSHServerProcess[bytes]], None]
) -> AsyncIterator[ShellTarget]:
    """An SSH server that lets anyone in and treats each command with `handle`."""
    (tmp_path / "host").write_text(generate_key_pair()[0])

    class Anyone(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return False

    port = free_port()
    acceptor = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=Anyone,
        server_host_keys=[str(tmp_path / "host")],
        process_factory=handle,
        encoding=None,
    )
    try:
        yield _target(port)
    finally:
        acceptor.close()
        await acceptor.wait_closed()


async def test_a_port_that_accepts_and_stays_silent_is_a_timeout_on_an_open_port() -> None:
    async with _tcp(lambda _reader, _writer: None) as port:
        reading = await _shell().read(_target(port), generate_key_pair()[0])
    assert (reading.ssh, reading.tcp_open, reading.launches, reading.agent) == (SshClass.TIMEOUT, True, None, None)


async def test_a_port_that_closes_at_once_is_dropped() -> None:
    async with _tcp(lambda _reader, writer: writer.close()) as port:
        reading = await _shell().read(_target(port), generate_key_pair()[0])
    assert (reading.ssh, reading.tcp_open) == (SshClass.DROPPED, True)


async def test_a_service_that_does_not_speak_ssh_is_no_healthy_session() -> None:
    async with _tcp(lambda _reader, writer: writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        reading = await _shell().read(_target(port), generate_key_pair()[0])
    assert reading.ssh in (SshClass.OTHER, SshClass.TIMEOUT, SshClass.DROPPED)
    assert reading.tcp_open is True


async def test_a_port_nobody_listens_on_is_refused() -> None:
    reading = await _shell().read(_target(free_port()), generate_key_pair()[0])
    assert (reading.ssh, reading.tcp_open) == (SshClass.REFUSED, False)


async def test_a_port_that_answers_nothing_is_a_timeout() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        # A queue of accepted connections that nobody takes up: further ones are left without an answer.
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        reading = await _shell().read(_target(port), generate_key_pair()[0])
        for sock in waiting:
            sock.close()
    assert (reading.ssh, reading.tcp_open) == (SshClass.TIMEOUT, False)


async def test_a_host_name_that_does_not_exist_is_name_resolution() -> None:
    reading = await _shell().read(_target(22, "no-such-host.invalid"), generate_key_pair()[0])
    assert (reading.ssh, reading.tcp_open) == (SshClass.NAME_RESOLUTION, False)


async def test_a_connection_lost_in_the_middle_of_a_command_is_unknown(tmp_path: Path) -> None:
    def drop(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(b"STARTED\n")
        process.channel.get_connection().abort()

    async with _ssh(tmp_path, drop) as target:
        key = generate_key_pair()[0]
        reading = await _shell().read(target, key)
        assert (reading.ssh, reading.launches, reading.agent) == (SshClass.DROPPED, None, None)
        assert reading.host_key is not None
        with pytest.raises(ShellError, match="lost"):
            await _shell().write_cells(target, key, b"{}")
        with pytest.raises(ShellError, match="lost"):
            await _shell().drain(target, key, attempt="a1")
        with pytest.raises(ShellError, match="lost"):
            await _shell().launch(
                target,
                key,
                attempt="a1",
                launch_id="l1",
                pod_started_at="t",
                command=["true"],
                check=(),
                log_file=None,
            )


async def test_a_session_closed_without_an_exit_status_is_unknown(tmp_path: Path) -> None:
    def vanish(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(b"STARTED\n")
        process.close()

    async with _ssh(tmp_path, vanish) as target:
        with pytest.raises(ShellError):
            await _shell().install_agent(target, generate_key_pair()[0], settings={})


async def test_a_pod_whose_shell_fails_is_reached_but_says_nothing(tmp_path: Path) -> None:
    def fail(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stderr.write(b"sh: not found\n")
        process.exit(127)

    async with _ssh(tmp_path, fail) as target:
        reading = await _shell().read(target, generate_key_pair()[0])
    assert (reading.ssh, reading.tcp_open, reading.launches) == (SshClass.OTHER, True, None)
    assert "127" in reading.message


async def test_an_answer_cut_short_leaves_everything_unknown(tmp_path: Path) -> None:
    def half(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(b"@@gpupod proc 1 3\nyes\n@@gpupod launch a1 500\n{")
        process.exit(0)

    async with _ssh(tmp_path, half) as target:
        reading = await _shell().read(target, generate_key_pair()[0])
    assert (reading.ssh, reading.launches, reading.agent) == (SshClass.OK, None, None)


async def test_a_pod_that_is_not_reached_says_so_in_the_error_of_an_act() -> None:
    with pytest.raises(ShellError) as raised:
        await _shell().drain(_target(free_port()), generate_key_pair()[0], attempt="a1")
    assert raised.value.reading is not None
    assert raised.value.reading.ssh is SshClass.REFUSED


async def test_a_visit_that_is_cancelled_leaves_no_connection_open() -> None:
    closed = asyncio.Event()

    async def watch(reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while await reader.read(1000):
                pass
        closed.set()

    watching: list[asyncio.Task[None]] = []
    begun = asyncio.Event()

    def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        watching.append(asyncio.ensure_future(watch(reader)))
        begun.set()

    async with _tcp(serve) as port:
        slow = AsyncsshShell(StoppedClock(), timeouts=replace(SHORT, login=60), layout=PodLayout())
        visit = asyncio.ensure_future(slow.read(_target(port), generate_key_pair()[0]))
        await begun.wait()
        visit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await visit
        async with asyncio.timeout(5):
            await closed.wait()
    await asyncio.gather(*watching)
