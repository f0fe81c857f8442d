"""The control plane as one thing: started, used, cut off, restarted, and ended without a trace."""

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from gpupod_rehearsal.controlplane import components
from gpupod_rehearsal.controlplane.access import Access, access_by_kubeconfig, write_kubeconfig
from gpupod_rehearsal.controlplane.binaries import ensure_programs
from gpupod_rehearsal.controlplane.build import Report
from gpupod_rehearsal.controlplane.pki import Pki, make_pki
from gpupod_rehearsal.controlplane.process import Server, ServerFailed

# Between looking for a free port and binding it, another program may take it.
_PORT_TRIES = 3
_ADMIN = "rehearsal-admin"


class ControlPlane:
    """A real API server: one that we started, or one that was there (then the servers are None).

    `access` is the administrator's; `etcd` and `apiserver` may be stopped, killed and restarted by tests.
    """

    def __init__(self, access: Access, *, local: "LocalServers | None" = None) -> None:
        self.access = access
        self._local = local

    @classmethod
    def start(
        cls,
        workdir: Path,
        *,
        progress: Report = print,
        controllers: Sequence[str] = (),
        apiserver_args: Sequence[str] = (),
        addresses: Sequence[str] = (),
    ) -> "Launch":
        """A context manager (for `with` and `async with`) around a new control plane with its data under `workdir`.

        `controllers` names controllers of kube-controller-manager, such as `garbage-collector-controller`,
        `namespace-controller` and `serviceaccount-controller`; without any it is not even built.
        `addresses`: IP addresses besides loopback at which `apiserver_args` make the API server reachable.
        """
        return Launch(workdir, progress, tuple(controllers), tuple(apiserver_args), tuple(addresses))

    @classmethod
    def attach(cls, kubeconfig: Path, *, context: str | None = None) -> Self:
        """The control plane of a cluster that is already there; nothing is started or stopped."""
        return cls(access_by_kubeconfig(kubeconfig, context))

    @property
    def etcd(self) -> Server:
        """Our etcd. Raises LookupError for an attached cluster."""
        return self._servers.etcd

    @property
    def apiserver(self) -> Server:
        """Our kube-apiserver. Raises LookupError for an attached cluster."""
        return self._servers.apiserver

    @property
    def _servers(self) -> "LocalServers":
        if self._local is None:
            raise LookupError("this cluster was there before us; its servers are not ours to touch")
        return self._local

    def restart_etcd(self) -> None:
        """Restart etcd and return once the API server serves from it again."""
        self.etcd.restart()
        self.apiserver.wait_ready()

    def restart_apiserver(self) -> None:
        """Restart the API server. Its watch cache starts anew, so watches from before are answered 410."""
        self.apiserver.restart()

    @contextlib.contextmanager
    def apiserver_down(self) -> Iterator[None]:
        """Inside the block nobody answers at the API server's address."""
        self.apiserver.kill()
        try:
            yield
        finally:
            self.apiserver.start()

    def start_controllers(self, controllers: Sequence[str], *, progress: Report = print) -> None:
        """Start kube-controller-manager with only `controllers`; a no-op when these run. Builds it when needed."""
        self._servers.start_controllers(tuple(controllers), self.access.kubeconfig, progress)

    def program(self, name: str, *, progress: Report = print) -> Path:
        """Path of `kubectl` or another program of this Kubernetes version; built when needed."""
        return ensure_programs([name], report=progress)[name]


class LocalServers:
    """The servers that this process started, and the order in which they end."""

    def __init__(self, workdir: Path, pki: Pki, etcd: Server, apiserver: Server, abandon: threading.Event) -> None:
        self.etcd = etcd
        self.apiserver = apiserver
        self._workdir = workdir
        self._pki = pki
        self._abandon = abandon
        self._manager: Server | None = None
        self._controllers: tuple[str, ...] = ()

    def start_controllers(self, controllers: tuple[str, ...], kubeconfig: Path, progress: Report) -> None:
        """See ControlPlane.start_controllers."""
        if self._manager is not None and self._manager.pid is not None and self._controllers == controllers:
            return
        program = ensure_programs(["kube-controller-manager"], report=progress, abandon=self._abandon)
        if self._manager is not None:
            self._manager.stop()
        self._manager = components.controller_manager(
            program["kube-controller-manager"],
            self._workdir,
            self._pki,
            port=components.free_port(),
            kubeconfig=kubeconfig,
            controllers=controllers,
            abandon=self._abandon,
        )
        self._manager.start()
        self._controllers = controllers

    def stop(self) -> None:
        """End all. The API server goes before etcd: without etcd its orderly stop hangs for minutes."""
        try:
            if self._manager is not None:
                self._manager.stop()
        finally:
            try:
                self.apiserver.stop()
            finally:
                self.etcd.stop()


class Launch:
    """Starts a control plane on entry and ends it on exit, also when the entry itself is interrupted."""

    def __init__(
        self,
        workdir: Path,
        progress: Report,
        controllers: tuple[str, ...],
        apiserver_args: tuple[str, ...],
        addresses: tuple[str, ...],
    ) -> None:
        self._workdir = workdir.absolute()
        self._progress = progress
        self._controllers = controllers
        self._apiserver_args = apiserver_args
        self._addresses = addresses
        self._abandon = threading.Event()
        self._servers: LocalServers | None = None

    def __enter__(self) -> ControlPlane:
        programs = ensure_programs(["etcd", "kube-apiserver"], report=self._progress, abandon=self._abandon)
        self._workdir.mkdir(parents=True, exist_ok=True, mode=0o700)
        pki = make_pki(self._workdir / "pki", self._addresses)
        token = secrets.token_urlsafe(32)
        tokens = self._workdir / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{token},{_ADMIN},{_ADMIN},"system:masters"\n', encoding="utf-8")
        self._progress("Starting etcd and kube-apiserver")
        for attempt in range(_PORT_TRIES):
            etcd_port, port = components.free_port(), components.free_port()
            etcd = components.etcd(programs["etcd"], self._workdir, pki, port=etcd_port, abandon=self._abandon)
            apiserver = components.apiserver(
                programs["kube-apiserver"],
                self._workdir,
                pki,
                port=port,
                etcd_port=etcd_port,
                tokens=tokens,
                extra=self._apiserver_args,
                abandon=self._abandon,
            )
            servers = LocalServers(self._workdir, pki, etcd, apiserver, self._abandon)
            try:
                etcd.start()
                apiserver.start()
                return self._ready(servers, pki, f"https://127.0.0.1:{port}", token)
            except ServerFailed as error:
                servers.stop()
                if attempt == _PORT_TRIES - 1 or "address already in use" not in str(error):
                    raise
            except BaseException:
                servers.stop()
                raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        servers, self._servers = self._servers, None
        if servers is not None:
            servers.stop()

    async def __aenter__(self) -> ControlPlane:
        starting = asyncio.ensure_future(asyncio.to_thread(self.__enter__))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread cannot be cancelled. It is told to give up, and what it had started is ended.
            self._abandon.set()
            await asyncio.wait([starting])
            self.__exit__(None, None, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def _ready(self, servers: LocalServers, pki: Pki, url: str, token: str) -> ControlPlane:
        kubeconfig = self._workdir / "kubeconfig"
        write_kubeconfig(kubeconfig, url=url, ca=pki.ca.read_bytes(), token=token, user=_ADMIN)
        plane = ControlPlane(Access(url=url, ca=pki.ca, kubeconfig=kubeconfig), local=servers)
        if self._controllers:
            plane.start_controllers(self._controllers, progress=self._progress)
        self._servers = servers
        return plane
