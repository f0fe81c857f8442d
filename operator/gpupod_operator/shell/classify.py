"""What a failed SSH attempt says. asyncssh's errors by type, OpenSSH's by a table of samples. Pure."""

from __future__ import annotations

import asyncio
import socket

import asyncssh

from gpupod_operator.core.shell import SshClass

_TEXTS: tuple[tuple[str, SshClass], ...] = (
    # OpenSSH client messages, lower case. The order matters: "connection closed" also ends sentences of others.
    ("could not resolve hostname", SshClass.NAME_RESOLUTION),
    ("name or service not known", SshClass.NAME_RESOLUTION),
    ("temporary failure in name resolution", SshClass.NAME_RESOLUTION),
    ("nodename nor servname provided", SshClass.NAME_RESOLUTION),
    ("no address associated with", SshClass.NAME_RESOLUTION),
    ("remote host identification has changed", SshClass.HOST_KEY),
    ("host key verification failed", SshClass.HOST_KEY),
    ("no matching host key type found", SshClass.HOST_KEY),
    ("permission denied (", SshClass.AUTH_DENIED),
    ("permission denied, please try again", SshClass.AUTH_DENIED),
    ("too many authentication failures", SshClass.AUTH_DENIED),
    ("no supported authentication methods", SshClass.AUTH_DENIED),
    ("connection refused", SshClass.REFUSED),
    ("connection timed out", SshClass.TIMEOUT),
    ("operation timed out", SshClass.TIMEOUT),
    ("no route to host", SshClass.TIMEOUT),
    ("network is unreachable", SshClass.TIMEOUT),
    ("host is down", SshClass.TIMEOUT),
    ("connection reset by", SshClass.DROPPED),
    ("connection closed by", SshClass.DROPPED),
    ("broken pipe", SshClass.DROPPED),
    ("timeout, server", SshClass.DROPPED),
)


def classify_text(text: str) -> SshClass:
    """The class of an OpenSSH client's standard error; OTHER for what the table does not know."""
    low = text.lower()
    return next((kind for sample, kind in _TEXTS if sample in low), SshClass.OTHER)


def classify_connect(error: BaseException) -> SshClass:
    """The class of an error of the TCP connection, before any SSH."""
    if isinstance(error, socket.gaierror):
        return SshClass.NAME_RESOLUTION
    if isinstance(error, ConnectionRefusedError):
        return SshClass.REFUSED
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return SshClass.TIMEOUT
    if isinstance(error, (ConnectionResetError, BrokenPipeError)):
        return SshClass.DROPPED
    # No route and the like: nothing answers there, as with a timeout.
    return SshClass.TIMEOUT if classify_text(str(error)) is SshClass.TIMEOUT else SshClass.OTHER


def classify_session(error: BaseException) -> SshClass:
    """The class of an error of the handshake, the login or the session, on an open TCP connection.

    A port that accepts and then stays silent is TIMEOUT, as OpenSSH calls it ("timed out during banner exchange").
    """
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return SshClass.HOST_KEY
    if isinstance(error, asyncssh.PermissionDenied):
        return SshClass.AUTH_DENIED
    if isinstance(error, asyncssh.ConnectionLost) and "timeout" in str(error).lower():
        return SshClass.TIMEOUT
    if isinstance(error, (asyncssh.ConnectionLost, asyncssh.ChannelOpenError)):
        return SshClass.DROPPED
    if isinstance(error, asyncssh.DisconnectError):
        return SshClass.HOST_KEY if "host key" in str(error).lower() else SshClass.OTHER
    if isinstance(error, OSError):
        return classify_connect(error)
    return SshClass.OTHER
