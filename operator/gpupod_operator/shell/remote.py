"""Run a script on the pod through an open connection, and never take an unknown outcome for one."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from dataclasses import dataclass

import asyncssh

from gpupod_operator.ports import ShellError

# The script comes first on stdin and is read byte by byte, so that what follows stays for the script to read; neither
# it nor the payload is in argv, which every process on the pod can see.
_LOADER = 'eval "$(dd bs=1 count={count} 2>/dev/null)"'

MAX_OUTPUT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ran:
    """A script that ended by itself."""

    exit_status: int
    stdout: bytes
    stderr: str


async def run_script(
    connection: asyncssh.SSHClientConnection, script: str, *, payload: bytes = b"", seconds: float
) -> Ran:
    """Run a POSIX sh script; `payload` is left on its stdin. Raises ShellError when the outcome is not known.

    What the script has started may run on after a ShellError: nothing on the pod ends with the session.
    """
    body = script.encode()
    command = f"exec sh -c {shlex.quote(_LOADER.format(count=len(body)))}"
    try:
        async with asyncio.timeout(seconds):
            process = await connection.create_process(command, encoding=None)
            # A command that ended before it read everything still has an exit status, which tells more.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(body + payload)
                process.stdin.write_eof()
            done = await process.wait()
    except TimeoutError as error:
        raise ShellError(f"no answer from the pod within {seconds:.0f} s") from error
    except (OSError, asyncssh.Error) as error:
        raise ShellError(f"the session broke: {type(error).__name__}: {error}") from error
    if done.exit_status is None:
        # asyncssh returns normally when the connection dies, with no exit status.
        raise ShellError("the connection was lost before the script ended")
    stdout = done.stdout if isinstance(done.stdout, bytes) else b""
    stderr = bytes(done.stderr).decode(errors="replace") if isinstance(done.stderr, bytes) else ""
    if len(stdout) > MAX_OUTPUT_BYTES:
        raise ShellError(f"the pod answered with more than {MAX_OUTPUT_BYTES} bytes")
    return Ran(int(done.exit_status), stdout, stderr)
