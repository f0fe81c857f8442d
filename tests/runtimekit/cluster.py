"""Kubernetes as far as the runtime's shared tasks use it, under the rights that a test gives."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from gpupod_operator.api.names import GPUPODS, SWEEPCELLS
from gpupod_operator.ports import ApiForbidden, ApiNotFound

Key = tuple[str, str]
_versions = itertools.count(1)


class MemoryCluster:
    """`rights`: the namespaces that may be listed and written to, None for all. `down`: path prefix to its error."""

    def __init__(self, rights: set[str] | None = None) -> None:
        self.rights = rights
        self.down: dict[str, Exception] = {}
        self.objects: dict[str, dict[Key, dict[str, Any]]] = {GPUPODS: {}, SWEEPCELLS: {}}
        self.configs: dict[Key, dict[str, Any]] = {}
        self.secrets: dict[Key, dict[str, bytes]] = {}
        self.asked: list[str] = []

    def put(self, plural: str, raw: dict[str, Any]) -> dict[str, Any]:
        raw["metadata"]["resourceVersion"] = str(next(_versions))
        self.objects[plural][raw["metadata"]["namespace"], raw["metadata"]["name"]] = raw
        return raw

    async def get(self, plural: str, namespace: str, name: str) -> dict[str, Any]:
        self._ask(f"get {plural}", namespace)
        found = self.objects[plural].get((namespace, name))
        if found is None:
            raise ApiNotFound(name)
        return found

    async def list_all(self, plural: str, namespace: str | None = None) -> tuple[dict[str, Any], ...]:
        self._ask(f"list {plural}", namespace)
        return tuple(raw for key, raw in self.objects[plural].items() if namespace in (None, key[0]))

    async def apply_status(
        self, plural: str, namespace: str, name: str, status: Mapping[str, Any], **_: object
    ) -> dict[str, Any]:
        found = await self.get(plural, namespace, name)
        return self.put(plural, {**found, "metadata": dict(found["metadata"]), "status": dict(status)})

    async def set_finalizer(
        self, plural: str, namespace: str, name: str, finalizer: str, *, present: bool, **_: object
    ) -> dict[str, Any]:
        found = await self.get(plural, namespace, name)
        metadata = found["metadata"] | {"finalizers": [finalizer] if present else []}
        return self.put(plural, {**found, "metadata": metadata})

    async def emit(self, obj: Mapping[str, Any], **_: object) -> None:
        self._ask("event", obj["metadata"]["namespace"])

    async def read_config(self, namespace: str, name: str) -> dict[str, Any] | None:
        self._ask(f"config {name}", namespace)
        return self.configs.get((namespace, name))

    async def apply_config(
        self, namespace: str, name: str, data: Mapping[str, str], *, labels: Mapping[str, str], owner: object = None
    ) -> None:
        self._ask(f"config {name}", namespace)
        await asyncio.sleep(0)  # two writers can meet
        self.configs[namespace, name] = {"metadata": {"name": name, "labels": dict(labels)}, "data": dict(data)}

    async def delete_config(self, namespace: str, name: str) -> None:
        self._ask(f"config {name}", namespace)
        self.configs.pop((namespace, name), None)

    async def read_secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        self._ask(f"secret {name}", namespace)
        found = self.secrets.get((namespace, name))
        if found is None:
            raise ApiNotFound(name)
        return found

    async def delete_secret(self, namespace: str, name: str) -> None:
        self._ask(f"secret {name}", namespace)
        self.secrets.pop((namespace, name), None)

    def _ask(self, what: str, namespace: str | None) -> None:
        self.asked.append(f"{what} {namespace or '*'}")
        for prefix, error in self.down.items():
            if what.startswith(prefix):
                raise error
        if self.rights is not None and namespace not in self.rights:
            raise ApiForbidden(f"{what} in {namespace or 'all namespaces'}")
