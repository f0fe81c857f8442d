"""PID 1 of a rented pod, run by file path inside the pod's namespaces with the standard library only.

It reaps orphans and obeys commands on stdin, one JSON object per line, each answered with one JSON line on stdout:
`{"op": "listen"}` and `{"op": "cut", "mode": "refuse"}` or `"blackhole"`. When stdin closes it exits, and the kernel
ends every process of the pod with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

_BANNER_WAIT = 15.0


def main() -> None:
    """Serve until stdin closes. One argument: JSON with `address`, `port` and `server`, the command to run."""
    settings = json.loads(sys.argv[1])
    os.umask(0o022)
    _reply({"ok": True})
    _serve(Door(settings["address"], settings["port"], settings["server"]))


class Door:
    """The SSH server of the pod and the ways to shut it."""

    def __init__(self, address: str, port: int, command: list[str]) -> None:
        self._address = (address, port)
        self._command = command
        self._server: int | None = None
        self._plugs: list[socket.socket] = []

    def open(self) -> None:
        """Start the server and wait for its banner. Raises OSError when none comes."""
        self._unplug()
        log = os.open("/var/log/ssh-server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        os.close(log)
        self._server = process.pid
        deadline = time.monotonic() + _BANNER_WAIT
        while not self._greets():
            _reap()
            if time.monotonic() > deadline or not _alive(process.pid):
                raise OSError(
                    f"no SSH server on {self._address[0]}:{self._address[1]}: {_tail('/var/log/ssh-server.log')}"
                )
            time.sleep(0.02)

    def shut(self, mode: str) -> None:
        """End the server and its sessions, but nothing that was detached from them. Blackhole swallows who knocks."""
        if self._server is not None:
            doomed = _server_processes(self._server)
            for pid in doomed:
                _kill(pid)
            # A dead leader keeps its sockets until its last thread is gone, so wait for the process, not for its death.
            while any(Path(f"/proc/{pid}").exists() for pid in doomed):
                _reap()
                time.sleep(0.01)
            self._server = None
        self._unplug()
        if mode == "blackhole":
            self._plug()

    def _plug(self) -> None:
        """Listen with a full queue, so that the kernel drops whatever knocks."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(self._address)
        listener.listen(0)
        self._plugs = [listener]
        for _ in range(2):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(self._address)
            self._plugs.append(filler)

    def _unplug(self) -> None:
        for plug in self._plugs:
            plug.close()
        self._plugs = []

    def _greets(self) -> bool:
        try:
            with socket.create_connection(self._address, timeout=2) as probe:
                return probe.recv(4) == b"SSH-"
        except OSError:
            return False


def _serve(door: Door) -> None:
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pending = b""
    while True:
        ready, _, _ = select.select([0, wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 512)
        _reap()
        if 0 not in ready:
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            return
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            _obey(door, json.loads(line))


def _obey(door: Door, command: dict[str, str]) -> None:
    try:
        if command["op"] == "listen":
            door.open()
        else:
            door.shut(command.get("mode", "refuse"))
    except OSError as error:
        _reply({"ok": False, "error": str(error)})
    else:
        _reply({"ok": True})


def _server_processes(server: int) -> list[int]:
    """The server and those below it that run the same program: listener and sessions, but not what sessions started."""
    parents, programs = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            programs[int(entry.name)] = (entry / "exe").readlink().name
        except OSError:
            continue
        parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found, grew = {server}, True
    while grew:
        more = {
            pid
            for pid, parent in parents.items()
            if parent in found and pid not in found and programs[pid].startswith("sshd")
        }
        grew = bool(more)
        found |= more
    return sorted(found, reverse=True)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _reap() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def _tail(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")[-300:].strip().replace("\n", " | ")
    except OSError:
        return "no log"


def _reply(answer: dict[str, object]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
