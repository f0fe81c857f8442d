"""What a Secret must hold to be of use, said to the person who filled it. No value ever gets into a message."""

from __future__ import annotations

import re
from dataclasses import dataclass

import asyncssh

from gpupod_operator.api.gpupod_spec import SecretKeyRef
from gpupod_operator.api.reasons import Reason

_TOKEN = re.compile(rb"[\x21-\x7e]{1,4096}")


class SecretProblem(Exception):
    """A Secret that cannot be used; `reason` and the message say what to do. Holds no value."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An SSH key pair; the private half is never shown."""

    private: str
    public: str

    def __repr__(self) -> str:
        return f"KeyPair(public={self.public!r})"


def one_line(value: bytes, ref: SecretKeyRef) -> None:
    """A token goes into a header and into a file of one line."""
    if not _TOKEN.fullmatch(value):
        raise SecretProblem(
            Reason.SECRET_INVALID,
            f"Secret {ref.name} holds no token under {ref.key!r} (one line of printable characters, no spaces): put "
            "the token there and nothing else",
        )


def public_line(private: bytes, secret: str) -> str:
    """The public half of a private key. Raises SecretProblem for a key that cannot be used unattended."""
    try:
        key = asyncssh.import_private_key(private.decode())
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
        raise SecretProblem(
            Reason.SECRET_INVALID,
            f"Secret {secret} holds no usable private key under ssh-privatekey ({type(error).__name__}): put an "
            f"unencrypted OpenSSH key there",
        ) from None
    return key.export_public_key("openssh").decode().strip()
