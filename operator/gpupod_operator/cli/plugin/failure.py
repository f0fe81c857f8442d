"""How a command says that it did not do what was asked."""

from __future__ import annotations


class Failed(Exception):
    """One sentence for the person, without a secret; exit code 1."""
