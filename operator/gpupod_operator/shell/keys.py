"""SSH key pairs for pods that bring none of their own."""

from __future__ import annotations

import asyncssh


def generate_key_pair(comment: str = "gpupod-operator") -> tuple[str, str]:
    """A new ed25519 pair: the private key as OpenSSH text, and the public line for `authorized_keys`."""
    key = asyncssh.generate_private_key("ssh-ed25519", comment=comment)
    return key.export_private_key("openssh").decode(), key.export_public_key("openssh").decode().strip()
