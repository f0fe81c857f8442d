"""How to reach a control plane: as its administrator, by kubeconfig, and as a ServiceAccount, the way a pod does."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from kubernetes import client, config

# The API server refuses lifetimes below ten minutes.
_TOKEN_SECONDS = 24 * 3600
_SERVICE_ACCOUNT_DIR = "GPUPOD_SERVICEACCOUNT_DIR"


@dataclass(frozen=True)
class Access:
    """The administrator's view of one API server; `kubeconfig` is a file that only its owner can read."""

    url: str
    ca: Path
    kubeconfig: Path
    context: str | None = None

    def api_client(self) -> client.ApiClient:
        """A client of the official library, as administrator. The caller closes it."""
        return _client_of(self.kubeconfig, self.context)

    def token_request(self, namespace: str, service_account: str, *, seconds: int = _TOKEN_SECONDS) -> str:
        """A token of an existing ServiceAccount, valid for `seconds` (600 or more), from the TokenRequest API.

        Raises kubernetes.client.ApiException; with status 404 there is no such ServiceAccount.
        """
        request = client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=seconds)
        )
        with self.api_client() as api:
            answer = client.CoreV1Api(api).create_namespaced_service_account_token(service_account, namespace, request)
        if answer.status is None or not answer.status.token:
            raise ValueError(f"the API server granted no token for {namespace}/{service_account}")
        return answer.status.token

    def in_cluster_env(
        self, folder: Path, *, namespace: str, service_account: str, seconds: int = _TOKEN_SECONDS
    ) -> dict[str, str]:
        """Write `token`, `ca.crt` and `namespace` to `folder` and return the environment that makes a process use them.

        It is what a kubelet gives a pod, except that the folder is named by GPUPOD_SERVICEACCOUNT_DIR, because
        /var/run/secrets belongs to the machine.
        """
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        token = folder / "token"
        token.touch(mode=0o600)
        token.write_text(self.token_request(namespace, service_account, seconds=seconds), encoding="utf-8")
        (folder / "ca.crt").write_bytes(self.ca.read_bytes())
        (folder / "namespace").write_text(namespace, encoding="utf-8")
        address = urlsplit(self.url)
        if address.hostname is None:
            raise ValueError(f"not the address of an API server: {self.url}")
        return {
            "KUBERNETES_SERVICE_HOST": address.hostname,
            "KUBERNETES_SERVICE_PORT": str(address.port or 443),
            _SERVICE_ACCOUNT_DIR: str(folder),
        }


def write_kubeconfig(path: Path, *, url: str, ca: bytes, token: str, user: str) -> None:
    """Write a self-contained kubeconfig, readable by its owner only."""
    name = "gpupod-rehearsal"
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": _base64(ca)}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content), encoding="utf-8")


def access_by_kubeconfig(kubeconfig: Path, context: str | None = None) -> Access:
    """Access to a cluster that is already there.

    Raises kubernetes.config.ConfigException for an unusable file, ValueError when it names no CA: a ServiceAccount
    login without one would have to trust whoever answers.
    """
    with _client_of(kubeconfig, context) as api:
        settings = api.configuration
        if not settings.ssl_ca_cert:
            raise ValueError(f"{kubeconfig} names no certificate authority for {settings.host}")
        # The library keeps the CA in a temporary file of its own that ends with the process.
        return Access(url=settings.host, ca=Path(settings.ssl_ca_cert), kubeconfig=kubeconfig, context=context)


def _client_of(kubeconfig: Path, context: str | None) -> client.ApiClient:
    api: client.ApiClient = config.new_client_from_config(config_file=str(kubeconfig), context=context)
    return api


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
