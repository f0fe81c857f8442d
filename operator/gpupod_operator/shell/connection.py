"""One isolated SSH connection: own TCP connect (so that its failures are told apart), pinned key, bounded in time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncssh

from gpupod_operator.core.shell import ShellTarget, SshClass
from gpupod_operator.shell.classify import classify_connect, classify_session
from gpupod_operator.shell.hostkey import PinningClient, algorithms_for


@dataclass(frozen=True, slots=True)
class ShellTimeouts:
    """Seconds. `keepalive` times `keepalive_count` is how long a frozen peer is believed in."""

    connect: float = 10.0
    login: float = 20.0
    command: float = 60.0
    check: float = 120.0
    transfer: float = 120.0
    keepalive: float = 15.0
    keepalive_count: int = 3


class ConnectFailed(Exception):
    """The session did not open. `ssh` is never OK; `tcp_open` says whether the port accepted."""

    def __init__(self, ssh: SshClass, message: str, *, tcp_open: bool, host_key: str | None = None) -> None:
        super().__init__(message)
        self.ssh = ssh
        self.message = message
        self.tcp_open = tcp_open
        self.host_key = host_key


@dataclass(frozen=True, slots=True)
class Opened:
    """A logged-in connection and the host key that the server showed."""

    connection: asyncssh.SSHClientConnection
    host_key: str


async def open_socket(host: str, port: int, timeouts: ShellTimeouts) -> socket.socket:
    """A connected socket. Raises ConnectFailed."""
    try:
        async with asyncio.timeout(timeouts.connect):
            return await _connect(host, port)
    except (OSError, ValueError) as error:
        kind = classify_connect(error)
        raise ConnectFailed(kind, f"{host}:{port}: {_say(error)}", tcp_open=False) from error


@asynccontextmanager
async def session(target: ShellTarget, key: str, timeouts: ShellTimeouts) -> AsyncIterator[Opened]:
    """Log in. Raises ConnectFailed; what the body raises passes through unchanged."""
    try:
        private = asyncssh.import_private_key(key)
    except (asyncssh.KeyImportError, ValueError) as error:
        # Our own key: it says nothing about the pod.
        text = "the SSH private key cannot be read (an unencrypted OpenSSH or PEM key is needed)"
        raise ConnectFailed(SshClass.NO_KEY, text, tcp_open=False) from error
    sock = await open_socket(target.host, target.port, timeouts)
    client = PinningClient(target.host_key)
    try:
        connection, _ = await asyncssh.create_connection(
            lambda: client,
            target.host,
            target.port,
            sock=sock,
            username=target.user,
            client_keys=[private],
            # An empty set of trusted keys makes asyncssh ask the client about each key; None would trust them all.
            known_hosts=([], [], []),
            server_host_key_algs=algorithms_for(target.host_key),
            # Nothing of ~/.ssh, no agent, no other method: what a pod sees depends on this call alone.
            config=None,
            agent_path=None,
            preferred_auth="publickey",
            login_timeout=timeouts.login,
            keepalive_interval=timeouts.keepalive,
            keepalive_count_max=timeouts.keepalive_count,
        )
    except (OSError, asyncssh.Error, ValueError) as error:
        sock.close()
        ssh, message = classify_session(error), _say(error)
        if client.mismatch:
            ssh, message = SshClass.HOST_KEY, f"the host key differs from the pinned one; it shows {client.seen}"
        where = f"{target.user}@{target.host}:{target.port}"
        raise ConnectFailed(ssh, f"{where}: {message}", tcp_open=True, host_key=client.seen) from error
    except BaseException:
        sock.close()
        raise
    try:
        yield Opened(connection, client.seen or "")
    finally:
        connection.abort()


async def _connect(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError = OSError(f"no address of {host} could be tried")
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure


def _say(error: BaseException) -> str:
    text = str(error) or "timed out"
    return f"{type(error).__name__}: {text}"
