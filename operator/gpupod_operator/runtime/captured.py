"""Logs of a pod that is about to go: a ConfigMap per attempt, redacted, at most 256 KiB, the last few kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpupod_operator.api.names import API_VERSION, GPUPOD_KIND
from gpupod_operator.core.plan import CaptureLogs
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable, Cluster
from gpupod_operator.runtime.logs import redact

LIMIT = 256 * 1024
LABELS = {"app.kubernetes.io/managed-by": "gpupod-operator", "app.kubernetes.io/component": "captured-logs"}


async def save_logs(
    cluster: Cluster, raw: Mapping[str, Any], action: CaptureLogs, parts: Mapping[str, str], keep: int
) -> str | None:
    """The ConfigMap's name, or None when it could not be written (a namespace that is going, a policy)."""
    metadata = raw["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    target = config_name(name, action.attempt)
    share = LIMIT // max(len(parts), 1)
    data = {part: redact(text)[-share:] for part, text in parts.items() if text}
    if not data:
        return None
    history = ((raw.get("status") or {}).get("history")) or []
    old = [entry["logs"] for entry in history if entry.get("logs")]
    try:
        await cluster.apply_config(namespace, target, data, labels=LABELS, owner=owner_of(raw))
    except (ApiForbidden, ApiInvalid, ApiUnavailable, ApiConflict, ApiNotFound):
        return None
    for surplus in old[: max(0, len(old) - (keep - 1))]:
        await _drop(cluster, namespace, surplus)
    return target


async def _drop(cluster: Cluster, namespace: str, name: str) -> None:
    """An old map that cannot be deleted now is tried again at the next capture."""
    try:
        await cluster.delete_config(namespace, name)
    except (ApiForbidden, ApiInvalid, ApiUnavailable, ApiConflict, ApiNotFound):
        return


def owner_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The GpuPod as an ownerReference."""
    return {
        "apiVersion": API_VERSION,
        "kind": GPUPOD_KIND,
        "name": raw["metadata"]["name"],
        "uid": raw["metadata"]["uid"],
    }


def config_name(pod: str, attempt: str) -> str:
    """`<object>-<attempt>-logs`."""
    return f"{pod[:200]}-{attempt or 'first'}-logs".lower()
