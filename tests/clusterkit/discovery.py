"""From a kind to the path of its resource, by asking the API server."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Resource:
    """One resource as served: `root` is `/api/v1` or `/apis/GROUP/VERSION`."""

    root: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        parts = [self.root]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/".join(parts)


class Discovery:
    """Remembers what it found; what it does not know it looks up anew, as a CRD may have come since."""

    def __init__(self, request: Callable[..., Awaitable[dict[str, Any]]]) -> None:
        self._request = request
        self._known: dict[tuple[str, str], Resource] = {}

    async def find(self, kind: str, api_version: str | None = None) -> Resource:
        """Raises LookupError for a kind that is not served."""
        found = self._lookup(kind, api_version)
        if found is None:
            await self._refresh()
            found = self._lookup(kind, api_version)
        if found is None:
            raise LookupError(f"the API server serves no {kind} in {api_version or 'any group'}")
        return found

    def _lookup(self, kind: str, api_version: str | None) -> Resource | None:
        if api_version is not None:
            return self._known.get((api_version, kind))
        # The core group is asked first, and so wins for kinds such as Event that live in two groups.
        return next((resource for (_, known), resource in self._known.items() if known == kind), None)

    async def _refresh(self) -> None:
        groups = await self._request("GET", "/apis")
        roots = {"v1": "/api/v1"}
        roots |= {
            group["preferredVersion"]["groupVersion"]: f"/apis/{group['preferredVersion']['groupVersion']}"
            for group in groups["groups"]
        }
        for api_version, root in roots.items():
            for resource in (await self._request("GET", root))["resources"]:
                if "/" not in resource["name"]:
                    self._known.setdefault(
                        (api_version, resource["kind"]), Resource(root, resource["name"], resource["namespaced"])
                    )
