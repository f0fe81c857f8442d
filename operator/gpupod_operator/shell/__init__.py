"""SSH sessions on rented pods."""

from gpupod_operator.shell.connection import ShellTimeouts
from gpupod_operator.shell.keys import generate_key_pair
from gpupod_operator.shell.redact import redact
from gpupod_operator.shell.shell import AsyncsshShell

__all__ = ["AsyncsshShell", "ShellTimeouts", "generate_key_pair", "redact"]
