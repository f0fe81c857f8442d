"""One way to log in to the Kubernetes API, for kopf and for our own client alike.

Inside a pod the ServiceAccount's directory is used, elsewhere the kubeconfig. kopf's own `login_with_service_account`
has the directory and the server name built in; ours reads `GPUPOD_SERVICEACCOUNT_DIR` and the two service variables,
so that the in-cluster path can be run (and tested) without writing to `/var/run`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import kopf

from gpupod_operator.cluster.kubeconfig import login_from_kubeconfig

SERVICEACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"
SERVICEACCOUNT_DIR_ENV = "GPUPOD_SERVICEACCOUNT_DIR"


def login(**_: Any) -> kopf.ConnectionInfo:
    """Credentials as of now: the ServiceAccount when its token file is there, else the current kubeconfig context.

    Reads the files anew on each call (a projected token is rotated by the kubelet about every 48 minutes). Blocking,
    but local files only, unless the kubeconfig names an exec plugin. Raises kopf.LoginError with one sentence that
    says what is missing; never with a credential in it.
    """
    directory = serviceaccount_dir()
    if (directory / "token").exists():
        return _from_serviceaccount(directory)
    return login_from_kubeconfig()


def serviceaccount_dir() -> Path:
    """Where the token, the CA and the namespace of the ServiceAccount are mounted."""
    return Path(os.environ.get(SERVICEACCOUNT_DIR_ENV) or SERVICEACCOUNT_DIR)


def credentials_version() -> tuple[int, int, int] | None:
    """Changes when the ServiceAccount's token file is replaced; None outside a pod. One `stat`, cheap per request."""
    try:
        found = (serviceaccount_dir() / "token").stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ino, found.st_size)


def own_namespace() -> str | None:
    """The namespace that the operator runs in, None outside a pod."""
    try:
        return (serviceaccount_dir() / "namespace").read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _from_serviceaccount(directory: Path) -> kopf.ConnectionInfo:
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    port = os.environ.get("KUBERNETES_SERVICE_PORT") or "443"
    if not host:
        raise kopf.LoginError(f"{directory} holds a token, but KUBERNETES_SERVICE_HOST is not set")
    try:
        token = (directory / "token").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise kopf.LoginError(f"cannot read {directory / 'token'}: {error.strerror}") from None
    if not token:
        raise kopf.LoginError(f"{directory / 'token'} is empty")
    authority = directory / "ca.crt"
    return kopf.ConnectionInfo(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca_path=str(authority) if authority.exists() else None,
        token=token,
        default_namespace=own_namespace(),
    )
