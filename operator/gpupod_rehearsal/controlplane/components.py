"""The command lines of etcd, kube-apiserver and kube-controller-manager, and how each tells that it is ready."""

import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from gpupod_rehearsal.controlplane.pki import Pki
from gpupod_rehearsal.controlplane.process import Server

_LOOPBACK = "127.0.0.1"
_ISSUER = "https://kubernetes.default.svc.cluster.local"
_PROBE_SECONDS = 2.0


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def etcd(program: Path, folder: Path, pki: Pki, *, port: int, abandon: threading.Event) -> Server:
    """etcd with mutual TLS on `port`. It does not sync to disk: a crash of the machine may cost the data of the run."""
    client, peer = f"https://{_LOOPBACK}:{port}", f"https://{_LOOPBACK}:{free_port()}"
    command = [
        str(program),
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        f"--cert-file={pki.certificate}",
        f"--key-file={pki.key}",
        "--client-cert-auth",
        f"--trusted-ca-file={pki.ca}",
        f"--peer-cert-file={pki.certificate}",
        f"--peer-key-file={pki.key}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={pki.ca}",
        "--log-level=warn",
    ]
    context = _tls(pki, client_certificate=True)
    return Server(
        "etcd",
        command,
        log=folder / "etcd.log",
        ready=lambda: _answers(f"{client}/health", context),
        abandon=abandon,
        # With clients connected its orderly stop does not end by itself.
        stop_grace=2,
    )


def apiserver(
    program: Path,
    folder: Path,
    pki: Pki,
    *,
    port: int,
    etcd_port: int,
    tokens: Path,
    extra: Sequence[str],
    abandon: threading.Event,
) -> Server:
    """kube-apiserver on `port` with RBAC, static tokens from the file `tokens`, and ServiceAccount tokens."""
    command = [
        str(program),
        f"--etcd-servers=https://{_LOOPBACK}:{etcd_port}",
        f"--etcd-cafile={pki.ca}",
        f"--etcd-certfile={pki.certificate}",
        f"--etcd-keyfile={pki.key}",
        f"--bind-address={_LOOPBACK}",
        f"--advertise-address={_LOOPBACK}",
        # The `kubernetes` Service may not point to a loopback address; nothing here resolves it.
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={pki.certificate}",
        f"--tls-private-key-file={pki.key}",
        f"--token-auth-file={tokens}",
        f"--service-account-issuer={_ISSUER}",
        f"--service-account-key-file={pki.service_account_public_key}",
        f"--service-account-signing-key-file={pki.service_account_key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        "--profiling=false",
        *extra,
    ]
    context = _tls(pki)
    return Server(
        "kube-apiserver",
        command,
        log=folder / "kube-apiserver.log",
        ready=lambda: _answers(f"https://{_LOOPBACK}:{port}/readyz", context),
        abandon=abandon,
    )


def controller_manager(
    program: Path,
    folder: Path,
    pki: Pki,
    *,
    port: int,
    kubeconfig: Path,
    controllers: Sequence[str],
    abandon: threading.Event,
) -> Server:
    """kube-controller-manager that runs only `controllers`, by the names that its --controllers flag knows."""
    command = [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--controllers={','.join(controllers)}",
        f"--bind-address={_LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={pki.certificate}",
        f"--tls-private-key-file={pki.key}",
        f"--service-account-private-key-file={pki.service_account_key}",
        f"--root-ca-file={pki.ca}",
        "--use-service-account-credentials=false",
        "--leader-elect=false",
    ]
    context = _tls(pki)
    return Server(
        "kube-controller-manager",
        command,
        log=folder / "kube-controller-manager.log",
        ready=lambda: _answers(f"https://{_LOOPBACK}:{port}/healthz", context),
        abandon=abandon,
    )


def _tls(pki: Pki, *, client_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pki.ca))
    if client_certificate:
        context.load_cert_chain(pki.certificate, pki.key)
    return context


def _answers(url: str, context: ssl.SSLContext) -> bool:
    # A proxy from the environment has no business on loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=_PROBE_SECONDS) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        # Refused, reset or 5xx: not yet. The caller sees whether the process lives and how long it may take.
        return False
