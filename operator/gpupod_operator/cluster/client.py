"""The `Cluster` of `ports` over one transport: server-side apply, conflict-free finalizers, complete lists."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from gpupod_operator.api.names import FIELD_MANAGER, GROUP, VERSION
from gpupod_operator.cluster import resources
from gpupod_operator.cluster.events import EventPoster
from gpupod_operator.cluster.transport import APPLY_PATCH, MERGE_PATCH, ApiTransport
from gpupod_operator.ports import ApiConflict, ApiNotFound, ApiUnavailable

PAGE = 500
"""Objects per page, as client-go's pager asks for."""


class ClusterClient:
    """Every write goes under our field manager, and only while `permit` (the Lease's `may_act`) says so.

    Reads are never served from the API server's watch cache on purpose: no `resourceVersion` is sent, so each answer is
    of now. Raises only the `Api*` errors of `ports`; a lost lease is NotLeader, which is an ApiUnavailable.
    """

    def __init__(self, transport: ApiTransport, events: EventPoster, *, permit: Callable[[], bool]) -> None:
        self._transport = transport
        self._events = events
        self._permit = permit

    async def get(self, plural: str, namespace: str, name: str) -> dict[str, Any]:
        return await self._transport.request("GET", resources.custom(plural, namespace, name))

    async def list_cells(self, namespace: str, pod: str) -> tuple[dict[str, Any], ...]:
        """A live, complete list of the SweepCells of one GpuPod, deleted ones that still exist included."""
        path = resources.custom("sweepcells", namespace)
        return await self._list(path, {"fieldSelector": f"spec.podRef.name={pod}"})

    async def list_all(self, plural: str, namespace: str | None = None) -> tuple[dict[str, Any], ...]:
        """A live, complete list of one of our kinds, of all namespaces without `namespace`."""
        return await self._list(resources.custom(plural, namespace), {})

    async def apply_status(
        self, plural: str, namespace: str, name: str, status: Mapping[str, Any], *, resource_version: str, uid: str
    ) -> dict[str, Any]:
        """Server-side apply of the whole status; the object as committed.

        A field that was in the last apply and is not in this one is removed. ApiConflict when the object is not at
        `resource_version` any more or is another one of that name, ApiNotFound when it is gone.
        """
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": _KINDS[plural],
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": resource_version, "uid": uid},
            "status": dict(status),
        }
        return await self._apply(resources.custom(plural, namespace, name, "status"), body)

    async def set_finalizer(
        self, plural: str, namespace: str, name: str, finalizer: str, *, present: bool, resource_version: str
    ) -> dict[str, Any]:
        """Add or remove our finalizer and leave those of others alone; nothing is sent when it is so already.

        ApiConflict when the object is not at `resource_version` any more.
        """
        path = resources.custom(plural, namespace, name)
        current = await self._transport.request("GET", path)
        metadata = current["metadata"]
        held = list(metadata.get("finalizers") or [])
        if (finalizer in held) is present:
            return current
        if metadata["resourceVersion"] != resource_version:
            raise ApiConflict(f"{path}: at {metadata['resourceVersion']}, not at {resource_version}")
        wanted = [*held, finalizer] if present else [f for f in held if f != finalizer]
        # A merge patch that carries the resourceVersion is refused with 409 if the object moved. A JSON patch with a
        # `test` is refused with 422, which reads like an invalid object.
        body = {"metadata": {"resourceVersion": resource_version, "uid": metadata["uid"], "finalizers": wanted}}
        return await self._write("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def read_secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        """The decoded values. ApiNotFound when the Secret does not exist."""
        found = await self._transport.request("GET", resources.core("secrets", namespace, name), secret=True)
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    async def apply_secret(
        self, namespace: str, name: str, data: Mapping[str, bytes], *, labels: Mapping[str, str]
    ) -> None:
        """Make the Secret hold exactly these keys of ours; created when it does not exist."""
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        body = _named("Secret", namespace, name, labels) | {"type": "Opaque", "data": encoded}
        await self._apply(resources.core("secrets", namespace, name), body, secret=True)

    async def delete_secret(self, namespace: str, name: str) -> None:
        """Delete; nothing to do when it is gone already."""
        await self._delete(resources.core("secrets", namespace, name))

    async def read_config(self, namespace: str, name: str) -> dict[str, Any] | None:
        """A ConfigMap or None when it does not exist."""
        try:
            return await self._transport.request("GET", resources.core("configmaps", namespace, name))
        except ApiNotFound:
            return None

    async def apply_config(
        self,
        namespace: str,
        name: str,
        data: Mapping[str, str],
        *,
        labels: Mapping[str, str],
        owner: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the ConfigMap hold exactly `data`: keys that somebody else put in are removed.

        With `owner` (an ownerReference) the garbage collector takes it away after its owner.
        """
        path = resources.core("configmaps", namespace, name)
        body = _named("ConfigMap", namespace, name, labels) | {"data": dict(data)}
        if owner is not None:
            body["metadata"] = body["metadata"] | {"ownerReferences": [dict(owner)]}
        live = await self._apply(path, body)
        # server-side apply leaves the keys of other managers where they are
        strange = [key for key in live.get("data") or {} if key not in data]
        if strange or live.get("binaryData"):
            version = live["metadata"]["resourceVersion"]
            pruned = {"metadata": {"resourceVersion": version}, "binaryData": None, "data": dict.fromkeys(strange)}
            await self._write("PATCH", path, body=pruned, content_type=MERGE_PATCH)

    async def delete_config(self, namespace: str, name: str) -> None:
        """Delete; nothing to do when it is gone already."""
        await self._delete(resources.core("configmaps", namespace, name))

    async def namespace_terminating(self, namespace: str) -> bool:
        """True also when the namespace is gone altogether."""
        try:
            found = await self._transport.request("GET", resources.core("namespaces", None, namespace))
        except ApiNotFound:
            return True
        return bool(found["metadata"].get("deletionTimestamp"))

    async def namespace_uid(self, namespace: str) -> str:
        """The uid of a namespace; that of `kube-system` is the operator's instance id."""
        found = await self._transport.request("GET", resources.core("namespaces", None, namespace))
        return str(found["metadata"]["uid"])

    async def emit(
        self, obj: Mapping[str, Any], *, kind: str, reason: str, message: str, warning: bool, action: str
    ) -> None:
        """One event on a transition; repeats and floods are dropped. ApiForbidden where it cannot be written."""
        await self._events.post(
            self._write, obj, kind=kind, reason=reason, message=message, warning=warning, action=action
        )

    async def _list(self, path: str, query: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
        found: list[dict[str, Any]] = []
        token = ""
        while True:
            asked = {**query, "limit": str(PAGE), **({"continue": token} if token else {})}
            page = await self._transport.request("GET", path, query=asked)
            if not isinstance(page.get("items"), list):
                raise ApiUnavailable(f"GET {path}: an answer that is not a list")
            found += page["items"]
            token = str((page.get("metadata") or {}).get("continue") or "")
            if not token:
                return tuple(found)

    async def _apply(self, path: str, body: Mapping[str, Any], *, secret: bool = False) -> dict[str, Any]:
        # force: a controller owns its fields, whoever else wrote them
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._write("PATCH", path, query=query, body=body, content_type=APPLY_PATCH, secret=secret)

    async def _delete(self, path: str) -> None:
        try:
            await self._write("DELETE", path)
        except ApiNotFound:
            return

    async def _write(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        options.setdefault("query", {"fieldManager": FIELD_MANAGER} if method != "DELETE" else None)
        return await self._transport.request(method, path, permit=self._permit, **options)


_KINDS: Mapping[str, str] = {"gpupods": "GpuPod", "sweepcells": "SweepCell"}


def _named(kind: str, namespace: str, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}
