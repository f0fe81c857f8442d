from __future__ import annotations

import socket

import asyncssh
import pytest

from gpupod_operator.core.shell import SshClass
from gpupod_operator.shell.classify import classify_connect, classify_session, classify_text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ssh: Could not resolve hostname pod-7: Name or service not known", SshClass.NAME_RESOLUTION),
        ("ssh: could not resolve hostname pod-7: Temporary failure in name resolution", SshClass.NAME_RESOLUTION),
        ("SSH: COULD NOT RESOLVE HOSTNAME X", SshClass.NAME_RESOLUTION),
        ("ssh: connect to host 1.2.3.4 port 22: Connection refused", SshClass.REFUSED),
        ("ssh: connect to host 1.2.3.4 port 22: Connection timed out", SshClass.TIMEOUT),
        ("ssh: connect to host 1.2.3.4 port 22: Operation timed out", SshClass.TIMEOUT),
        ("ssh: connect to host 1.2.3.4 port 22: No route to host", SshClass.TIMEOUT),
        ("Connection timed out during banner exchange", SshClass.TIMEOUT),
        ("root@1.2.3.4: Permission denied (publickey).", SshClass.AUTH_DENIED),
        ("Received disconnect from 1.2.3.4: 2: Too many authentication failures", SshClass.AUTH_DENIED),
        ("@@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@@\nHost key verification failed.", SshClass.HOST_KEY),
        ("Host key verification failed.\nConnection closed by 1.2.3.4", SshClass.HOST_KEY),
        ("kex_exchange_identification: read: Connection reset by peer", SshClass.DROPPED),
        ("Connection closed by 1.2.3.4 port 22", SshClass.DROPPED),
        ("client_loop: send disconnect: Broken pipe", SshClass.DROPPED),
        ("Timeout, server 1.2.3.4 not responding.", SshClass.DROPPED),
        ("bash: /root/x: Permission denied", SshClass.OTHER),
        ("something new", SshClass.OTHER),
        ("", SshClass.OTHER),
    ],
)
def test_the_words_of_an_openssh_client_have_their_class(text: str, kind: SshClass) -> None:
    assert classify_text(text) is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (socket.gaierror(-2, "Name or service not known"), SshClass.NAME_RESOLUTION),
        (ConnectionRefusedError(111, "Connection refused"), SshClass.REFUSED),
        (TimeoutError(), SshClass.TIMEOUT),
        (OSError(113, "No route to host"), SshClass.TIMEOUT),
        (OSError(101, "Network is unreachable"), SshClass.TIMEOUT),
        (ConnectionResetError(104, "Connection reset by peer"), SshClass.DROPPED),
        (OSError(24, "Too many open files"), SshClass.OTHER),
    ],
)
def test_a_connect_that_fails_has_its_class(error: OSError, kind: SshClass) -> None:
    assert classify_connect(error) is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (asyncssh.HostKeyNotVerifiable("Host key is not trusted"), SshClass.HOST_KEY),
        (asyncssh.KeyExchangeFailed("No matching host key algorithm found"), SshClass.HOST_KEY),
        (asyncssh.PermissionDenied("Permission denied"), SshClass.AUTH_DENIED),
        (asyncssh.ConnectionLost("Login timeout expired"), SshClass.TIMEOUT),
        (asyncssh.ConnectionLost("Connection lost"), SshClass.DROPPED),
        (asyncssh.ChannelOpenError(1, "SSH connection closed"), SshClass.DROPPED),
        (ConnectionResetError(104, "Connection reset by peer"), SshClass.DROPPED),
        (asyncssh.ProtocolError("Unexpected"), SshClass.OTHER),
        (ValueError("anything"), SshClass.OTHER),
    ],
)
def test_a_session_that_fails_has_its_class(error: Exception, kind: SshClass) -> None:
    assert classify_session(error) is kind
