"""Pinned host keys: the first one is taken and reported, another one than the pinned ends the attempt."""

from __future__ import annotations

import asyncssh

_ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
"""ed25519 first, so that a server with several keys always shows the same one."""


def key_line(key: asyncssh.SSHKey) -> str:
    """`ssh-ed25519 AAAA...`, without a comment."""
    return " ".join(key.export_public_key("openssh").decode().split()[:2])


def algorithms_for(pinned: str | None) -> list[str]:
    """Host key algorithms to ask for, the pinned key's first."""
    kind = (pinned or "").split(" ")[0]
    family = "rsa-" if kind == "ssh-rsa" else kind
    return sorted(_ALGORITHMS, key=lambda name: not (family and name.startswith(family)))


class PinningClient(asyncssh.SSHClient):
    """Compares the server's key with the pinned line; `seen` is what the server showed."""

    def __init__(self, pinned: str | None) -> None:
        self._pinned = " ".join(pinned.split()[:2]) if pinned else None
        self.seen: str | None = None

    @property
    def mismatch(self) -> bool:
        """The server showed a key, and it is not the pinned one."""
        return self._pinned is not None and self.seen is not None and self.seen != self._pinned

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        self.seen = key_line(key)
        return not self.mismatch
