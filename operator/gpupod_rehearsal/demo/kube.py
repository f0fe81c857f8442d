"""The demo's view of the cluster, as its administrator: apply, get, list. Blocking calls in threads."""

from __future__ import annotations

import asyncio
from typing import Any

from kubernetes import client, dynamic
from kubernetes.dynamic.exceptions import NotFoundError

from gpupod_rehearsal.controlplane import Access

FIELD_MANAGER = "gpupod-rehearsal"


class Kube:
    """Server-side apply and reads over the official client."""

    def __init__(self, access: Access) -> None:
        self._api: client.ApiClient = access.api_client()
        self._client = dynamic.DynamicClient(self._api)

    async def apply(self, manifest: dict[str, Any], namespace: str | None = None) -> None:
        """Create or update one object."""
        await asyncio.to_thread(self._apply, manifest, namespace)

    async def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """One object, or None."""
        return await asyncio.to_thread(self._get, api_version, kind, name, namespace)

    async def items(self, api_version: str, kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
        """All objects of a kind."""
        return await asyncio.to_thread(self._items, api_version, kind, namespace)

    async def delete(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> None:
        """Delete one object; absent is fine."""
        await asyncio.to_thread(self._delete, api_version, kind, name, namespace)

    async def release(self, api_version: str, kind: str, name: str, namespace: str) -> None:
        """Delete one object without its finalizers; absent is fine. Only for objects whose operator has ended."""
        await self.delete(api_version, kind, name, namespace)
        await asyncio.to_thread(self._strip, api_version, kind, name, namespace)

    async def served(self, api_version: str, kind: str) -> None:
        """Return once the API server serves a kind whose CRD was just applied (at most 20 s)."""
        async with asyncio.timeout(20):
            while not await asyncio.to_thread(self._serves, api_version, kind):  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0.1)

    def close(self) -> None:
        """Close the connections."""
        self._api.close()

    def _resource(self, api_version: str, kind: str) -> Any:
        return self._client.resources.get(api_version=api_version, kind=kind)

    def _apply(self, manifest: dict[str, Any], namespace: str | None) -> None:
        resource = self._resource(manifest["apiVersion"], manifest["kind"])
        self._client.server_side_apply(
            resource,
            body=manifest,
            name=manifest["metadata"]["name"],
            namespace=namespace,
            field_manager=FIELD_MANAGER,
            force_conflicts=True,
        )

    def _get(self, api_version: str, kind: str, name: str, namespace: str | None) -> dict[str, Any] | None:
        try:
            found = self._client.get(self._resource(api_version, kind), name=name, namespace=namespace)
        except NotFoundError:
            return None
        return dict(found.to_dict())

    def _items(self, api_version: str, kind: str, namespace: str | None) -> list[dict[str, Any]]:
        return list(self._client.get(self._resource(api_version, kind), namespace=namespace).to_dict()["items"])

    def _delete(self, api_version: str, kind: str, name: str, namespace: str | None) -> None:
        try:
            self._client.delete(self._resource(api_version, kind), name=name, namespace=namespace)
        except NotFoundError:
            return

    def _strip(self, api_version: str, kind: str, name: str, namespace: str) -> None:
        body = {"metadata": {"finalizers": None}}
        try:
            self._client.patch(
                self._resource(api_version, kind),
                body=body,
                name=name,
                namespace=namespace,
                content_type="application/merge-patch+json",
            )
        except NotFoundError:
            return

    def _serves(self, api_version: str, kind: str) -> bool:
        try:
            self._client.resources.invalidate_cache()
            self._items(api_version, kind, None)
        except Exception:  # noqa: BLE001 - any refusal means "not yet", and the caller bounds the wait
            return False
        return True
