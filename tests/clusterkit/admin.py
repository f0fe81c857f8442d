"""A small asynchronous Kubernetes client for tests: plain dicts in and out, and waiting by watch, never by sleeping."""

import asyncio
import contextlib
import itertools
import json
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml

from clusterkit.discovery import Discovery, Resource

Manifest = dict[str, Any]
Predicate = Callable[[Manifest | None], bool]

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_FIELD_MANAGER = "gpupod-tests"
# As often as client-go repeats a request that is answered 429.
_BUSY_TRIES = 10


class Refused(Exception):
    """The API server said no: its HTTP status, its reason (`Invalid`, `Conflict`, ...) and its whole message."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class Admin:
    """All verbs on all kinds; a kind is named as in a manifest (`GpuPod`, `ConfigMap`)."""

    def __init__(self, url: str, ca: Path, token: str) -> None:
        self.url = url
        self._session = aiohttp.ClientSession(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(ca))),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
        )
        self._discovery = Discovery(self._request)

    @classmethod
    def by_kubeconfig(cls, url: str, ca: Path, kubeconfig: Path) -> Self:
        """A client with the token that stands in `kubeconfig`."""
        users = yaml.safe_load(kubeconfig.read_text())["users"]
        return cls(url, ca, users[0]["user"]["token"])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def create(self, manifest: Manifest, *, namespace: str | None = None) -> Manifest:
        resource = await self._resource(manifest)
        return await self._request("POST", resource.path(self._namespace(manifest, namespace)), body=manifest)

    async def get(self, kind: str, name: str, *, namespace: str | None = None) -> Manifest:
        return await self._request("GET", (await self._discovery.find(kind)).path(namespace, name))

    async def find(self, kind: str, name: str, *, namespace: str | None = None) -> Manifest | None:
        """The object, or None where there is none."""
        try:
            return await self.get(kind, name, namespace=namespace)
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise

    async def list(self, kind: str, *, namespace: str | None = None, **query: str) -> list[Manifest]:
        """All objects; `query` takes `labelSelector`, `fieldSelector`. Without a namespace: of the whole cluster."""
        answer = await self._request("GET", (await self._discovery.find(kind)).path(namespace), query=query)
        return list(answer["items"])

    async def patch(
        self, kind: str, name: str, patch: Manifest, *, namespace: str | None = None, subresource: str | None = None
    ) -> Manifest:
        """JSON merge patch; None removes a field."""
        path = (await self._discovery.find(kind)).path(namespace, name, subresource)
        return await self._request("PATCH", path, body=patch, content_type=_MERGE)

    async def apply(
        self,
        manifest: Manifest,
        *,
        namespace: str | None = None,
        manager: str = _FIELD_MANAGER,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        """Server-side apply by `manager`, forced; refuses fields that the schema does not know."""
        resource = await self._resource(manifest)
        path = resource.path(self._namespace(manifest, namespace), manifest["metadata"]["name"], subresource)
        query = {"fieldManager": manager, "force": "true", "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        return await self._request("PATCH", path, body=manifest, content_type=_APPLY, query=query)

    async def replace(
        self, manifest: Manifest, *, namespace: str | None = None, subresource: str | None = None
    ) -> Manifest:
        """PUT: with a `resourceVersion` in the manifest it conflicts when somebody else was faster."""
        resource = await self._resource(manifest)
        path = resource.path(self._namespace(manifest, namespace), manifest["metadata"]["name"], subresource)
        return await self._request("PUT", path, body=manifest)

    async def delete(self, kind: str, name: str, *, namespace: str | None = None) -> None:
        """Ask for deletion; it returns while finalizers still hold the object. No object is fine, too."""
        path = (await self._discovery.find(kind)).path(namespace, name)
        try:
            await self._request("DELETE", path, body={"propagationPolicy": "Background"})
        except Refused as refusal:
            if refusal.status != 404:
                raise

    async def delete_all(self, kind: str, namespace: str) -> None:
        """Every object of the kind in the namespace, in one request; finalizers hold theirs."""
        await self._request("DELETE", (await self._discovery.find(kind)).path(namespace))

    async def finalize(self, namespace: str) -> None:
        """Take the API server's own finalizer off a namespace, which a merge patch cannot."""
        found = await self.find("Namespace", namespace)
        if found is not None:
            path = (await self._discovery.find("Namespace")).path(None, namespace, "finalize")
            await self._request("PUT", path, body={**found, "spec": {"finalizers": []}})

    async def watch_until(
        self, kind: str, name: str, predicate: Predicate, *, namespace: str | None = None, timeout: float = 30
    ) -> Manifest | None:
        """Return the object as soon as `predicate` holds for it (it gets None while there is none).

        Survives restarts of the API server. After `timeout` seconds TimeoutError shows the object as last seen.
        """
        last: Manifest | None = None
        try:
            async with asyncio.timeout(timeout):
                async for last in self._states(kind, name, namespace):
                    if predicate(last):
                        return last
        except TimeoutError:
            seen = yaml.safe_dump(last, sort_keys=False) if last is not None else "no such object"
            raise TimeoutError(f"{kind} {namespace}/{name} not as awaited within {timeout} s:\n{seen}") from None
        raise AssertionError("states never end")

    async def wait_gone(self, kind: str, name: str, *, namespace: str | None = None, timeout: float = 30) -> None:
        """Return once the object is gone from the API server."""
        await self.watch_until(kind, name, lambda found: found is None, namespace=namespace, timeout=timeout)

    async def watch(self, kind: str, *, namespace: str | None = None, **query: str) -> AsyncIterator[Manifest]:
        """Watch events (`type`, `object`) until the server ends the stream. Raises Refused on an ERROR event."""
        path = (await self._discovery.find(kind)).path(namespace)
        async with self._session.get(path, params={"watch": "true", **query}) as answer:
            await _check(answer)
            # Lines may be longer than aiohttp's own limit for a line.
            pending = b""
            async for chunk in answer.content.iter_any():
                *lines, pending = (pending + chunk).split(b"\n")
                for line in filter(None, lines):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise Refused(status.get("code", 500), status.get("reason", ""), status.get("message", ""))
                    yield event

    async def _states(self, kind: str, name: str, namespace: str | None) -> AsyncIterator[Manifest | None]:
        while True:
            # An API server that restarts is refused, cut or Gone for a moment; then we look anew.
            with contextlib.suppress(aiohttp.ClientError):
                current = await self._list_one(kind, name, namespace)
                yield current["items"][0] if current["items"] else None
                query = {
                    "fieldSelector": f"metadata.name={name}",
                    "resourceVersion": current["metadata"]["resourceVersion"],
                }
                try:
                    async for event in self.watch(kind, namespace=namespace, **query):
                        yield None if event["type"] == "DELETED" else event["object"]
                except Refused as refusal:
                    if refusal.status != 410:
                        raise
            # Lets the loop run; the connection attempts themselves take their time.
            await asyncio.sleep(0.05)

    async def _list_one(self, kind: str, name: str, namespace: str | None) -> Manifest:
        try:
            path = (await self._discovery.find(kind)).path(namespace)
            return await self._request("GET", path, query={"fieldSelector": f"metadata.name={name}"})
        except Refused as refusal:
            # While etcd or the API server comes back: 5xx, and 403 before the RBAC rules are loaded.
            if refusal.status >= 500 or refusal.status in {403, 429}:
                raise aiohttp.ClientError(str(refusal)) from refusal
            raise

    async def _resource(self, manifest: Manifest) -> Resource:
        return await self._discovery.find(manifest["kind"], manifest["apiVersion"])

    @staticmethod
    def _namespace(manifest: Manifest, namespace: str | None) -> str | None:
        return namespace or manifest["metadata"].get("namespace")

    async def _request(
        self,
        method: str,
        path: str,
        *,
        body: Manifest | None = None,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Manifest:
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        for attempt in itertools.count():
            async with self._session.request(method, path, data=data, headers=headers, params=query or {}) as answer:
                if answer.status != 429 or attempt == _BUSY_TRIES:
                    await _check(answer)
                    content: Manifest = await answer.json(content_type=None)
                    return content
                # Not a verdict: "storage is (re)initializing" right after a CRD came. client-go waits as well.
                await asyncio.sleep(float(answer.headers.get("Retry-After", "1")))
        raise AssertionError("counting never ends")


async def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status < 400:
        return
    text = await answer.text()
    try:
        status = json.loads(text)
    except ValueError:
        status = {}
    raise Refused(answer.status, status.get("reason", ""), status.get("message", text))
