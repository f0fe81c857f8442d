"""Rented pods as namespaces of this machine: each has its own files, processes and SSH server on a loopback address.

Needs `unshare` and `setpriv` of util-linux, and either root or unprivileged user namespaces.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from gpupod_rehearsal.hosts import container
from gpupod_rehearsal.hosts.protocol import Endpoint, HostError, NamespacesUnavailable, PodLaunch

_ROOTFS = Path(__file__).with_name("rootfs.py")
_ANSWER_SECONDS = 30.0
#: Worlds of different processes take different loopback networks, so that they do not race for ports.
_FIRST_NETWORK = 70
_REMEDY = "run as root, allow unprivileged user namespaces, or use the container image"

SshServer = Literal["auto", "openssh", "asyncssh"]


@dataclass(slots=True)
class _Running:
    process: asyncio.subprocess.Process
    endpoint: Endpoint
    host_key: str


class NamespaceHost:
    """Pods under `workdir`: `pods/<id>/disk` (wiped at a stop), `pods/<id>/volume`, and `volumes/<network volume>`.

    Each pod has an address of its own in `network` (two numbers; of loopback unless given) and a new port and host key
    at every start. Close it (`async with`): every process it started ends. They also end when this process dies.
    """

    instant = False

    def __init__(self, workdir: Path, *, ssh: SshServer = "auto", network: str | None = None) -> None:
        self._workdir = workdir.resolve()
        self._root = os.geteuid() == 0
        sshd = container.find_sshd() if self._root else None
        if ssh == "openssh" and sshd is None:
            raise HostError("OpenSSH's server needs root and the package openssh-server")
        self._sshd = None if ssh == "asyncssh" else sshd
        self._random = random.Random()  # ports, not secrets
        self._running: dict[str, _Running] = {}
        self._addresses: dict[str, str] = {}
        self._checked = False
        self._network = network or f"127.{_FIRST_NETWORK + os.getpid() % 150}"

    @property
    def ssh_server(self) -> str:
        """Which SSH server pods run: `openssh` or `asyncssh`."""
        return "asyncssh" if self._sshd is None else "openssh"

    def directory(self, pod_id: str) -> Path:
        """Where the pod's disk and host-local volume lie on this machine."""
        return self._workdir / "pods" / pod_id

    def host_key(self, pod_id: str) -> str:
        """The public host key of the pod's present start. Raises KeyError when it does not run."""
        return self._running[pod_id].host_key

    async def start(self, pod: PodLaunch) -> Endpoint:
        await self.check()
        await self._end(pod.pod_id)
        address = self._addresses.setdefault(pod.pod_id, self._new_address())
        endpoint = Endpoint(address, self._free_port(address))
        private, public = container.new_host_key()
        env = {**pod.env, "RUNPOD_PUBLIC_IP": endpoint.ip, "RUNPOD_TCP_PORT_22": str(endpoint.port)}
        directory = self.directory(pod.pod_id)
        for name in ("root", "disk", "volume"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        spec = directory / "pod.json"
        files = container.files(pod.pod_id, env, pod.authorized_keys, private, (endpoint.ip, endpoint.port))
        settings = {
            "address": endpoint.ip,
            "port": endpoint.port,
            "host_key": "/etc/ssh/ssh_host_ed25519_key",
            "authorized_keys": "/root/.ssh/authorized_keys",
        }
        files.append(("/run/gpupod/ssh_server.json", 0o600, json.dumps(settings)))
        _write_private(
            spec,
            {
                "hostname": pod.pod_id,
                "root": str(directory / "root"),
                "read_only": container.read_only_directories(),
                "binds": self._binds(pod),
                "files": files,
                "init": container.init_command((endpoint.ip, endpoint.port), self._sshd),
                "init_env": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
            },
        )
        process = await self._spawn(spec)
        self._running[pod.pod_id] = _Running(process, endpoint, public)
        try:
            await self._answer(process)
            spec.unlink()
            await self._ask(process, {"op": "listen"})
        except BaseException:
            await self._end(pod.pod_id)
            raise
        return endpoint

    async def set_reachable(self, pod_id: str, reachable: bool, mode: str = "blackhole") -> None:
        running = self._running.get(pod_id)
        if running is not None:
            await self._ask(running.process, {"op": "listen"} if reachable else {"op": "cut", "mode": mode})

    async def stop(self, pod_id: str) -> None:
        await self._end(pod_id)
        await asyncio.to_thread(shutil.rmtree, self.directory(pod_id) / "disk", ignore_errors=True)

    async def restart(self, pod: PodLaunch) -> Endpoint:
        await self.stop(pod.pod_id)
        return await self.start(pod)

    async def terminate(self, pod_id: str) -> None:
        await self._end(pod_id)
        await asyncio.to_thread(shutil.rmtree, self.directory(pod_id), ignore_errors=True)

    async def close(self) -> None:
        await asyncio.gather(*(self._end(pod_id) for pod_id in list(self._running)))

    async def __aenter__(self) -> Self:
        await self.check()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _binds(self, pod: PodLaunch) -> list[tuple[str, str]]:
        """The container disk under /workspace, unless a volume is mounted there."""
        directory = self.directory(pod.pod_id)
        if pod.mount is None:
            return [(str(directory / "disk"), "/workspace")]
        source = directory / "volume"
        if pod.mount.network_volume is not None:
            source = self._workdir / "volumes" / pod.mount.network_volume
            source.mkdir(parents=True, exist_ok=True)
        binds = [(str(source), pod.mount.path)]
        if Path(pod.mount.path) != Path("/workspace"):
            binds.insert(0, (str(directory / "disk"), "/workspace"))
        return binds

    async def check(self) -> None:
        """Raise NamespacesUnavailable unless a namespace can be made here."""
        if self._checked:
            return
        missing = [tool for tool in ("unshare", "setpriv", "setsid") if shutil.which(tool) is None]
        if not sys.platform.startswith("linux") or missing:
            raise NamespacesUnavailable(
                f"pods need Linux with util-linux ({', '.join(missing) or 'not Linux'}); {_REMEDY}"
            )
        probe = await asyncio.create_subprocess_exec(
            *self._unshare(), "true", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        _, errors = await probe.communicate()
        if probe.returncode != 0:
            said = errors.decode(errors="replace").strip().replace("\n", " ")
            raise NamespacesUnavailable(f"this machine allows no namespaces ({said}); {_REMEDY}")
        self._checked = True

    def _unshare(self) -> Sequence[str]:
        flags = ["--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child=SIGKILL"]
        return ["unshare", *flags] if self._root else ["unshare", "--user", "--map-root-user", *flags]

    async def _spawn(self, spec: Path) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            "setpriv",
            "--pdeathsig",
            "KILL",
            *self._unshare(),
            sys.executable,
            "-I",
            "-S",
            str(_ROOTFS),
            str(spec),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
            start_new_session=True,
        )

    async def _ask(self, process: asyncio.subprocess.Process, command: dict[str, str]) -> None:
        if process.stdin is None or process.stdin.is_closing():
            raise HostError("the pod's init is gone")
        process.stdin.write(json.dumps(command).encode() + b"\n")
        await self._answer(process)

    async def _answer(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            raise HostError("the pod's init has no output")
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                line = await process.stdout.readline()
        except TimeoutError as error:
            raise HostError("the pod's init does not answer") from error
        if not line:
            raise HostError("the pod's init died")
        answer = json.loads(line)
        if not answer["ok"]:
            raise HostError(str(answer["error"]))

    async def _end(self, pod_id: str) -> None:
        running = self._running.pop(pod_id, None)
        if running is None:
            return
        process = running.process
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(5):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _new_address(self) -> str:
        number = len(self._addresses)
        return f"{self._network}.{number // 250 % 250}.{number % 250 + 1}"

    def _free_port(self, address: str) -> int:
        for _ in range(100):
            port = self._random.randint(20_000, 32_000)
            with contextlib.closing(socket.socket()) as probe, contextlib.suppress(OSError):
                probe.bind((address, port))
                return port
        raise HostError(f"no free port on {address}")


def _write_private(path: Path, document: object) -> None:
    """The pod's environment may hold tokens: nobody else may read the file, and the pod's start removes it."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(document, file)
