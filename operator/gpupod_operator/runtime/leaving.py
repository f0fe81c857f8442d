"""Objects that hold a pod: what would bill on, unwatched, if the operator went away now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def would_bill_on(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence per GpuPod with a pod, or with a create that may still show one."""
    lines = []
    for raw in objects:
        metadata, status = raw["metadata"], raw.get("status") or {}
        attempt = status.get("attempt") or {}
        pod_id = attempt.get("podId")
        if pod_id in (status.get("released") or ()):
            continue
        where = f"{metadata['namespace']}/{metadata['name']}"
        if pod_id is not None:
            pod = status.get("pod") or {}
            price = (status.get("cost") or {}).get("perHour")
            paid = f"${price}/h" if price is not None else "an unknown price"
            lines.append(f"{where}: pod {pod_id} is {pod.get('providerStatus') or 'not seen yet'} and costs {paid}")
        elif attempt.get("intent") == "Create":
            lines.append(f"{where}: a create is under way, whose pod nobody would know")
    return lines
