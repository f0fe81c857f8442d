"""One API server serves many tests, one after the other: what a test left in it is taken away."""

from __future__ import annotations

from clusterkit.admin import Admin
from clusterkit.fixtures import wipe

OURS = ("SweepCell", "GpuPod")
KINDS = ("ConfigMap", "Secret", "Lease", "Pod", "Event")
CLUSTERS_OWN = ("default", "kube-system", "kube-public", "kube-node-lease")


async def clear(admin: Admin) -> None:
    """Leave nothing for the next operator to find. The test's own operators have ended."""
    for kind in OURS:
        for namespace in await _namespaces_with(admin, kind):
            await wipe(admin, kind, namespace)
    for kind in KINDS:
        for namespace in await _namespaces_with(admin, kind):
            await admin.delete_all(kind, namespace)
    for found in await admin.list("Namespace"):
        if found["metadata"].get("deletionTimestamp") and found["status"]["phase"] == "Terminating":
            await _let_go(admin, found["metadata"]["name"])


async def _namespaces_with(admin: Admin, kind: str) -> set[str]:
    return {item["metadata"]["namespace"] for item in await admin.list(kind)} - {*CLUSTERS_OWN}


async def _let_go(admin: Admin, name: str) -> None:
    """What the namespace controller does at the end. It may not run, and the name is wanted again."""
    await admin.finalize(name)
    await admin.wait_gone("Namespace", name)
