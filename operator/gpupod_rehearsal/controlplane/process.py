"""Child processes that never outlive us, and servers that are started, watched until ready, stopped and restarted."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_LEASH = Path(__file__).with_name("leash.py")
_POLL_SECONDS = 0.05
_LOG_TAIL_BYTES = 3000

# The kernel ties "parent died" to the thread that forked. This one thread lives as long as the interpreter.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gpupod-spawner")


class ServerFailed(RuntimeError):
    """A server ended before it was ready, or was not ready in time. The message holds the end of its log."""


class Abandoned(RuntimeError):
    """The caller gave up while we were building or waiting."""


def spawn(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
    stdout: int | None = None,
    stderr: int | None = None,
) -> subprocess.Popen[str]:
    """Start `command` (absolute program path first) in a session of its own.

    The session keeps a Ctrl-C of the terminal away from it, so that we decide the order in which things end.
    `death_signal` reaches it when this process dies in whatever way.
    """
    leashed = [sys.executable, "-I", "-S", str(_LEASH), str(os.getpid()), str(int(death_signal)), *command]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            leashed,
            cwd=cwd,
            env=dict(env) if env is not None else None,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )

    return _SPAWNER.submit(start).result()


def end(child: subprocess.Popen[str], *, grace: float, request: signal.Signals = signal.SIGTERM) -> None:
    """Ask `child`'s whole session to end by `request` and insist after `grace` seconds; it is reaped on return."""
    if child.poll() is None:
        _signal_session(child, request)
        try:
            child.wait(timeout=grace)
        except subprocess.TimeoutExpired:
            pass
        finally:
            # Also when a second Ctrl-C interrupts the wait: nothing stays behind.
            if child.poll() is None:
                _signal_session(child, signal.SIGKILL)
                child.wait()


class Server:
    """One server process: its command line, its log, and the question that tells whether it is ready.

    `ready` is asked about every 50 ms and must not raise for "not yet".
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        ready: Callable[[], bool],
        abandon: threading.Event,
        stop_grace: float = 15.0,
    ) -> None:
        self.name = name
        self.command = tuple(command)
        self.log = log
        self._ready = ready
        self._abandon = abandon
        self._stop_grace = stop_grace
        self._child: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    def start(self, *, timeout: float = 90.0) -> None:
        """Start and wait until ready. Raises ServerFailed, with nothing left running; a no-op while it runs."""
        if self.pid is not None:
            return
        with self.log.open("a", encoding="utf-8") as log:
            self._child = spawn(self.command, stdout=log.fileno(), stderr=log.fileno())
        try:
            self.wait_ready(timeout=timeout)
        except BaseException:
            self.kill()
            raise

    def wait_ready(self, *, timeout: float = 90.0) -> None:
        """Return once the server says it is ready. Raises ServerFailed or Abandoned."""
        deadline = time.monotonic() + timeout
        while not self._ready():
            if self._child is None or self._child.poll() is not None:
                code = None if self._child is None else self._child.returncode
                raise ServerFailed(f"{self.name} ended with code {code} before it was ready: {self._log_tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} was not ready within {timeout:.0f} s: {self._log_tail()}")
            if self._abandon.wait(_POLL_SECONDS):
                raise Abandoned(f"start of {self.name} was given up")

    def stop(self) -> None:
        """End it in order; insists after the grace time."""
        child, self._child = self._child, None
        if child is not None:
            end(child, grace=self._stop_grace)

    def kill(self) -> None:
        """End it the hard way, as a crash would."""
        child, self._child = self._child, None
        if child is not None and child.poll() is None:
            _signal_session(child, signal.SIGKILL)
            child.wait()

    def restart(self, *, timeout: float = 90.0) -> None:
        """Stop in order and start again on the same port with the same data."""
        self.stop()
        self.start(timeout=timeout)

    def _log_tail(self) -> str:
        text = self.log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace") if self.log.exists() else ""
        return f"see {self.log}, which ends with:\n{text}"


def _signal_session(child: subprocess.Popen[str], number: signal.Signals) -> None:
    # A group that ended in this very moment is what we wanted.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)
