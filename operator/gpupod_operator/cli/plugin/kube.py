"""The Kubernetes API as the plugin uses it: blocking calls, plain JSON out, errors in one sentence."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError, ResourceNotFoundError

from gpupod_operator.api.names import API_VERSION, GPUPOD_KIND, SWEEPCELL_KIND
from gpupod_operator.cli.plugin.failure import Failed

FIELD_MANAGER = "kubectl-gpupod"
"""Who owns the fields that this plugin sets."""

MERGE = "application/merge-patch+json"
LIMIT = {"_request_timeout": 30.0}
"""Seconds for one request: a person waits in front of it."""

T = TypeVar("T")


class Refused(Failed):
    """The API server's answer; `status` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Kube:
    """One cluster by kubeconfig, or by the ServiceAccount of the pod that this runs in."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None, namespace: str | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._namespace = namespace

    @cached_property
    def namespace(self) -> str:
        """The given one, else the context's, else `default`."""
        if self._namespace is not None:
            return self._namespace
        try:
            contexts, active = config.list_kube_config_contexts(self._kubeconfig)
        except ConfigException:
            return "default"
        wanted = next((c for c in contexts if c["name"] == self._context), None) if self._context else active
        return str(((wanted or {}).get("context") or {}).get("namespace") or "default")

    def pod(self, name: str) -> dict[str, Any]:
        """The GpuPod. Raises Refused (404) where there is none."""
        return self._call(lambda: self._pods.get(name=name, namespace=self.namespace, **LIMIT), f"GpuPod {name}")

    def find_pod(self, name: str) -> dict[str, Any] | None:
        """The GpuPod, or None."""
        try:
            return self.pod(name)
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise

    def pods(self, *, everywhere: bool = False) -> list[dict[str, Any]]:
        """All GpuPods of the namespace, or of the cluster."""
        namespace = None if everywhere else self.namespace
        return self._items(lambda: self._pods.get(namespace=namespace, **LIMIT), "GpuPods")

    def cells(self, pod: str) -> list[dict[str, Any]]:
        """The SweepCells whose podRef names the GpuPod, by name."""
        select = f"spec.podRef.name={pod}"
        found = self._items(
            lambda: self._cells.get(namespace=self.namespace, field_selector=select, **LIMIT), "SweepCells"
        )
        return sorted(found, key=lambda cell: str(cell["metadata"]["name"]))

    def patch_pod(self, name: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """JSON merge patch under our field manager; a `resourceVersion` in it makes it conditional (409)."""
        return self._call(
            lambda: self._pods.patch(
                name=name,
                namespace=self.namespace,
                body=dict(patch),
                content_type=MERGE,
                field_manager=FIELD_MANAGER,
                **LIMIT,
            ),
            f"GpuPod {name}",
        )

    def create_pod(self, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """A new GpuPod with exactly this spec."""
        body = {"apiVersion": API_VERSION, "kind": GPUPOD_KIND, "metadata": {"name": name}, "spec": dict(spec)}
        return self._call(
            lambda: self._pods.create(body=body, namespace=self.namespace, field_manager=FIELD_MANAGER, **LIMIT),
            f"GpuPod {name}",
        )

    def secret(self, name: str, namespace: str | None = None) -> dict[str, bytes]:
        """The Secret's data, decoded. The caller shows none of it."""
        where = namespace or self.namespace
        found = self._call(
            lambda: self._core("Secret").get(name=name, namespace=where, **LIMIT), f"Secret {where}/{name}"
        )
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    def instance_id(self) -> str:
        """The uid of the namespace kube-system: by it the operator's stamps name this cluster."""
        found = self._call(lambda: self._core("Namespace").get(name="kube-system", **LIMIT), "namespace kube-system")
        return str(found["metadata"]["uid"])

    @cached_property
    def _client(self) -> DynamicClient:
        try:
            api = config.new_client_from_config(config_file=self._kubeconfig, context=self._context)
        except (ConfigException, OSError) as error:
            if self._kubeconfig is not None or self._context is not None:
                raise Failed(f"kubeconfig: {error}") from None
            api = _in_cluster(error)
        return _told(lambda: DynamicClient(api, cache_file=_discovery_file(api.configuration.host)), "discovery")

    @cached_property
    def _pods(self) -> Any:
        return self._resource(API_VERSION, GPUPOD_KIND)

    @cached_property
    def _cells(self) -> Any:
        return self._resource(API_VERSION, SWEEPCELL_KIND)

    def _core(self, kind: str) -> Any:
        return self._resource("v1", kind)

    def _resource(self, version: str, kind: str) -> Any:
        try:
            return _told(lambda: self._client.resources.get(api_version=version, kind=kind), kind)
        except ResourceNotFoundError:
            raise Failed(f"this cluster has no {kind} ({version}): gpupod-operator crds | kubectl apply -f -") from None

    def _call(self, request: Callable[[], Any], what: str) -> dict[str, Any]:
        answer: dict[str, Any] = _told(request, what).to_dict()
        return answer

    def _items(self, request: Callable[[], Any], what: str) -> list[dict[str, Any]]:
        return list(self._call(request, what).get("items") or ())


def _discovery_file(host: str) -> str:
    # the client's own default is a guessable name in /tmp, which on a shared machine anybody may have written
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "gpupod"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        home = Path(tempfile.mkdtemp(prefix="gpupod-"))
    return str(home / f"discovery-{hashlib.sha256(host.encode()).hexdigest()[:12]}.json")


def _in_cluster(first: Exception) -> client.ApiClient:
    try:
        config.load_incluster_config()
    except ConfigException:
        raise Failed(f"no way into a cluster: {first}") from None
    return client.ApiClient()


def _told(request: Callable[[], T], what: str) -> T:
    """The answer, or the API server's own words in one line."""
    try:
        return request()
    except (DynamicApiError, ApiException) as error:
        status = int(error.status or 0)
        raise Refused(f"{what}: {_words(error)}", status) from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Failed(f"the Kubernetes API cannot be reached: {error}") from None


def _words(error: Any) -> str:
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else error.body
    try:
        status = json.loads(body or "{}")
    except ValueError:
        status = {}
    message = status.get("message") if isinstance(status, dict) else None
    return str(message or error.reason or "refused")
