"""Paths of the API server, quoted."""

from __future__ import annotations

from urllib.parse import quote

from gpupod_operator.api.names import GROUP, VERSION


def custom(plural: str, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    """A path of our own kinds; without a namespace, of all namespaces."""
    return _path(f"/apis/{GROUP}/{VERSION}", plural, namespace, name, subresource)


def core(plural: str, namespace: str | None, name: str | None = None) -> str:
    """A path of `v1`."""
    return _path("/api/v1", plural, namespace, name, None)


def lease(namespace: str, name: str | None = None) -> str:
    """A path of `coordination.k8s.io/v1` Leases."""
    return _path("/apis/coordination.k8s.io/v1", "leases", namespace, name, None)


def events(namespace: str) -> str:
    """The path to which `events.k8s.io/v1` Events are posted."""
    return _path("/apis/events.k8s.io/v1", "events", namespace, None, None)


def _path(root: str, plural: str, namespace: str | None, name: str | None, subresource: str | None) -> str:
    parts = ["namespaces", namespace] if namespace is not None else []
    parts += [plural, *(p for p in (name, subresource) if p is not None)]
    return root + "".join(f"/{quote(part, safe='')}" for part in parts)
