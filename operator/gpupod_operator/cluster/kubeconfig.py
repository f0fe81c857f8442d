"""Credentials from a kubeconfig, for an operator that runs outside the cluster.

kopf's `login_with_kubeconfig` knows neither exec plugins (EKS, GKE and AKS need them) nor token files nor paths
relative to the file. The `kubernetes` package knows all of it, but costs 1.3 s and 56 MB at import, in every operator.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kopf
import yaml

EXEC_TIMEOUT = 60.0
"""Seconds for an exec plugin. `aws eks get-token` and `gke-gcloud-auth-plugin` take 1 to 5."""


def login_from_kubeconfig() -> kopf.ConnectionInfo:
    """The current context of `KUBECONFIG` (several files, the first value wins) or `~/.kube/config`.

    Raises kopf.LoginError naming the file and what it lacks.
    """
    paths = _paths()
    if not paths:
        raise kopf.LoginError("no ServiceAccount token and no kubeconfig: set KUBECONFIG or run inside the cluster")
    merged = _merge(paths)
    current = merged["current-context"]
    if not current:
        raise kopf.LoginError(f"no current-context in {_names(paths)}")
    context, _ = _named(merged, "contexts", current, paths)
    cluster, cluster_base = _named(merged, "clusters", context.get("cluster"), paths)
    user, user_base = _named(merged, "users", context.get("user"), paths)
    if not cluster.get("server"):
        raise kopf.LoginError(f"the cluster of context {current} in {_names(paths)} has no server")
    fields = _exec_plugin(user["exec"], user_base) if user.get("exec") else {}
    authority = cluster.get("certificate-authority-data")
    token = fields.get("token") or user.get("token") or _token_file(user, user_base)
    return kopf.ConnectionInfo(
        server=str(cluster["server"]).rstrip("/"),
        ca_path=None if authority else _path(cluster, "certificate-authority", cluster_base),
        ca_data=authority,
        insecure=cluster.get("insecure-skip-tls-verify"),
        certificate_path=None if _has_data(user, fields) else _path(user, "client-certificate", user_base),
        certificate_data=fields.get("clientCertificateData") or user.get("client-certificate-data"),
        private_key_path=None if _has_data(user, fields) else _path(user, "client-key", user_base),
        private_key_data=fields.get("clientKeyData") or user.get("client-key-data"),
        username=user.get("username"),
        password=user.get("password"),
        token=token,
        default_namespace=context.get("namespace"),
        proxy_url=cluster.get("proxy-url"),
    )


def _paths() -> list[Path]:
    given = os.environ.get("KUBECONFIG")
    if given:
        return [Path(part.strip()).expanduser() for part in given.split(os.pathsep) if part.strip()]
    usual = Path("~/.kube/config").expanduser()
    return [usual] if usual.exists() else []


def _names(paths: list[Path]) -> str:
    return ", ".join(str(p) for p in paths)


def _merge(paths: list[Path]) -> dict[str, Any]:
    merged: dict[str, Any] = {"current-context": None, "contexts": {}, "clusters": {}, "users": {}}
    for path in paths:
        try:
            document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except OSError as error:
            raise kopf.LoginError(f"cannot read kubeconfig {path}: {error.strerror}") from None
        except (yaml.YAMLError, UnicodeDecodeError):
            # the parser's message quotes the text around the fault, which may be a credential
            raise kopf.LoginError(f"kubeconfig {path} is not valid YAML") from None
        if not isinstance(document, Mapping):
            raise kopf.LoginError(f"kubeconfig {path} is not a mapping")
        merged["current-context"] = merged["current-context"] or document.get("current-context")
        for group, singular in (("contexts", "context"), ("clusters", "cluster"), ("users", "user")):
            for item in document.get(group) or []:
                if not isinstance(item, Mapping):
                    raise kopf.LoginError(f"kubeconfig {path} has an entry in {group} that is not a mapping")
                merged[group].setdefault(item.get("name"), (item.get(singular) or {}, path.parent))
    return merged


def _named(merged: dict[str, Any], group: str, name: Any, paths: list[Path]) -> tuple[Mapping[str, Any], Path]:
    found: tuple[Mapping[str, Any], Path] | None = merged[group].get(name)
    if found is None:
        raise kopf.LoginError(f"{_names(paths)} has no entry {name!r} in {group}")
    return found


def _path(entry: Mapping[str, Any], key: str, base: Path) -> str | None:
    return str(base / Path(entry[key]).expanduser()) if entry.get(key) else None


def _has_data(user: Mapping[str, Any], fields: Mapping[str, str]) -> bool:
    return bool(user.get("client-certificate-data") or fields.get("clientCertificateData"))


def _token_file(user: Mapping[str, Any], base: Path) -> str | None:
    path = _path(user, "tokenFile", base)
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise kopf.LoginError(f"cannot read the token file {path}: {error.strerror}") from None


def _exec_plugin(plugin: Mapping[str, Any], base: Path) -> Mapping[str, str]:
    command = str(plugin.get("command") or "")
    if os.sep in command:
        command = str(base / command)
    version = plugin.get("apiVersion") or "client.authentication.k8s.io/v1"
    ask = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    environment = os.environ | {e["name"]: e["value"] for e in plugin.get("env") or []}
    try:
        # the user's own kubeconfig names the command, as for kubectl
        done = subprocess.run(
            [command, *(plugin.get("args") or [])],
            env=environment | {"KUBERNETES_EXEC_INFO": json.dumps(ask)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=EXEC_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise kopf.LoginError(f"the kubeconfig's exec plugin {command} failed: {type(error).__name__}") from None
    if done.returncode != 0:
        raise kopf.LoginError(f"the kubeconfig's exec plugin {command} exited with {done.returncode}")
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    status = answer.get("status") if isinstance(answer, Mapping) else None
    if not isinstance(status, Mapping):
        # its output is not quoted: it may be a credential in another form
        raise kopf.LoginError(f"the kubeconfig's exec plugin {command} did not print an ExecCredential")
    return {k: v for k, v in status.items() if isinstance(v, str)}
