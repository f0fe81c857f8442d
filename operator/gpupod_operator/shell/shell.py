"""PodShell over asyncssh: one isolated session per call, everything bounded in time."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from gpupod_operator.core.shell import ShellReading, ShellTarget, SshClass
from gpupod_operator.ports import Clock, LaunchRefused, ShellError
from gpupod_operator.shell.agent import install_payload, install_script
from gpupod_operator.shell.connection import ConnectFailed, ShellTimeouts, open_socket, session
from gpupod_operator.shell.launching import Launch, drain_script, launch_script
from gpupod_operator.shell.layout import PodLayout
from gpupod_operator.shell.logs import logs_script, logs_text
from gpupod_operator.shell.reading import parse_visit, reading_script
from gpupod_operator.shell.redact import redact
from gpupod_operator.shell.remote import Ran, run_script
from gpupod_operator.shell.tree import AgentTree

SESSIONS = 32
"""Sessions open at once. A login costs about 10 ms of CPU; more at once only make all of them slower."""

_WRITE = r"""
umask 022
mkdir -p "$(dirname "$path")" || exit 73
cat > "$path.new" || exit 74
[ "$(wc -c < "$path.new")" -eq "$size" ] || { rm -f "$path.new"; exit 75; }
mv -f "$path.new" "$path"
"""


class AsyncsshShell:
    """See `ports.PodShell`, which this implements. Safe for use by many objects at once in one event loop."""

    def __init__(
        self,
        clock: Clock,
        *,
        timeouts: ShellTimeouts | None = None,
        layout: PodLayout | None = None,
        tree: AgentTree | None = None,
        sessions: int = SESSIONS,
    ) -> None:
        self._clock = clock
        self._timeouts = timeouts or ShellTimeouts()
        self._layout = layout or PodLayout()
        self._tree = tree or AgentTree.load()
        self._turns = asyncio.Semaphore(sessions)

    @property
    def tree_hash(self) -> str:
        """The hash of the agent's tree that `install_agent` puts on a pod."""
        return self._tree.hash

    async def read(self, target: ShellTarget, key: str, *, level: str = "Auth") -> ShellReading:
        """One visit; see `PodShell.read`. The host key is reported when the server showed one."""
        if level == "Mapping":
            return ShellReading(SshClass.OK, "a mapping is enough; no session was tried", self._clock.now())
        try:
            if level == "Tcp":
                async with self._turns:
                    (await open_socket(target.host, target.port, self._timeouts)).close()
                return ShellReading(SshClass.OK, "the port accepts connections", self._clock.now(), tcp_open=True)
            return await self._visit(target, key)
        except ConnectFailed as failed:
            return ShellReading(
                failed.ssh, failed.message, self._clock.now(), host_key=failed.host_key, tcp_open=failed.tcp_open
            )

    async def install_agent(self, target: ShellTarget, key: str, *, settings: Mapping[str, Any]) -> str:
        """See `PodShell.install_agent`. A pod without Python is no error here: the agent's problem says it."""
        script = install_script(self._layout, self._tree, settings)
        payload = install_payload(self._tree, settings)
        ran = await self._run(target, key, script, payload=payload, seconds=self._timeouts.transfer)
        word, rest = _answer(ran)
        if word not in ("STARTED", "NOPYTHON"):
            raise ShellError(f"the agent could not be installed: {redact(rest) or word}")
        return self._tree.hash

    async def write_cells(self, target: ShellTarget, key: str, cells: bytes) -> None:
        """See `PodShell.write_cells`. A file that arrives incomplete is never put in place."""
        script = f"path={shlex.quote(self._layout.cells)}\nsize={len(cells)}\n{_WRITE}"
        ran = await self._run(target, key, script, payload=cells, seconds=self._timeouts.transfer)
        if ran.exit_status != 0:
            raise ShellError(f"cells.json could not be written (exit {ran.exit_status}): {redact(ran.stderr)[-300:]}")

    async def launch(
        self,
        target: ShellTarget,
        key: str,
        *,
        attempt: str,
        launch_id: str,
        pod_started_at: str,
        command: Sequence[str],
        check: Sequence[str],
        log_file: str | None,
    ) -> None:
        """See `PodShell.launch`. A launch id that has run already is not started again, whatever became of it."""
        launch = Launch(attempt, launch_id, target.pod_id, pod_started_at, command, check, log_file)
        script = launch_script(self._layout, launch, check_seconds=int(self._timeouts.check))
        ran = await self._run(target, key, script, seconds=self._timeouts.command + self._timeouts.check)
        word, rest = _answer(ran)
        if word == "REFUSED":
            code, _, tail = rest.partition("\n")
            raise LaunchRefused(f"workload.check exited with {code}: {redact(tail).strip() or '(no output)'}")
        if word not in ("STARTED", "RUNNING", "RAN"):
            raise ShellError(f"it is not known whether the workload was started: {redact(rest) or word}")

    async def drain(self, target: ShellTarget, key: str, *, attempt: str, grace_seconds: int = 60) -> None:
        """See `PodShell.drain`. Returns when nothing of the launch is alive."""
        script = drain_script(self._layout, attempt, grace_seconds)
        ran = await self._run(target, key, script, seconds=self._timeouts.command + grace_seconds)
        word, rest = _answer(ran)
        if word not in ("NONE", "ENDED", "KILLED"):
            raise ShellError(f"the workload could not be ended: {word} {redact(rest)}")

    async def capture_logs(self, target: ShellTarget, key: str, *, attempt: str, limit_bytes: int = 262144) -> str:
        """See `PodShell.capture_logs`. Credentials are removed, and lines cut at the front are left out."""
        script = logs_script(self._layout, attempt, limit_bytes)
        ran = await self._run(target, key, script, seconds=self._timeouts.command)
        if ran.exit_status != 0:
            raise ShellError(f"the logs could not be read (exit {ran.exit_status}): {redact(ran.stderr)[-300:]}")
        return logs_text(ran.stdout, limit_bytes)

    async def _visit(self, target: ShellTarget, key: str) -> ShellReading:
        async with self._turns, session(target, key, self._timeouts) as opened:
            asked_at = self._clock.now()
            try:
                ran = await run_script(opened.connection, reading_script(self._layout), seconds=self._timeouts.command)
            except ShellError as lost:
                return self._reading(SshClass.DROPPED, str(lost), opened.host_key)
            if ran.exit_status != 0:
                text = f"logged in, but sh failed with {ran.exit_status}: {redact(ran.stderr).strip()[-300:]}"
                return self._reading(SshClass.OTHER, text, opened.host_key)
            visit = parse_visit(ran.stdout, asked_at)
            return ShellReading(
                SshClass.OK,
                "logged in" if visit.launches is not None else "logged in; the records on the pod cannot be read",
                self._clock.now(),
                host_key=opened.host_key,
                tcp_open=True,
                launches=visit.launches,
                agent=visit.agent,
            )

    def _reading(self, ssh: SshClass, message: str, host_key: str) -> ShellReading:
        return ShellReading(ssh, message, self._clock.now(), host_key=host_key, tcp_open=True)

    async def _run(self, target: ShellTarget, key: str, script: str, *, seconds: float, payload: bytes = b"") -> Ran:
        try:
            async with self._turns, session(target, key, self._timeouts) as opened:
                return await run_script(opened.connection, script, payload=payload, seconds=seconds)
        except ConnectFailed as failed:
            reading = ShellReading(
                failed.ssh, failed.message, self._clock.now(), host_key=failed.host_key, tcp_open=failed.tcp_open
            )
            raise ShellError(failed.message, reading) from failed


def _answer(ran: Ran) -> tuple[str, str]:
    """The word a script answered with, and the rest; a script that failed outright answers with its exit status."""
    word, _, rest = ran.stdout.decode(errors="replace").strip().partition(" ")
    if "\n" in word:
        word, _, rest = ran.stdout.decode(errors="replace").strip().partition("\n")
    return (word, rest) if word else (f"exit {ran.exit_status}", ran.stderr[-300:])
