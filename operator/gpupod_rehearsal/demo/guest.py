"""A cluster that is somebody's: entered only if nothing of ours is there, and left as it was."""

from __future__ import annotations

from gpupod_rehearsal.demo import manifests
from gpupod_rehearsal.demo.kube import Kube

API = "gpupod.dev/v1alpha1"
NAMESPACE = "demo"
SYSTEM = "gpupod-system"
_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class NotThisCluster(RuntimeError):
    """The given cluster has something of ours already: a rehearsal must not meet an operator with real money."""


async def refuse_if_used(kube: Kube) -> None:
    """Raise NotThisCluster where our CRDs, our cluster roles or namespaces of our names exist: they are not ours."""
    for manifest in manifests.crds():
        if await kube.get(*_CRD, manifest["metadata"]["name"]) is not None:
            raise NotThisCluster(
                "this cluster already has the CRDs of gpupod.dev: an operator may work here with real money. Use "
                "another cluster, or run without --kubeconfig"
            )
    for manifest in _cluster_wide():
        name = manifest["metadata"]["name"]
        if await kube.get(manifest["apiVersion"], manifest["kind"], name) is not None:
            raise NotThisCluster(f"this cluster already has a {manifest['kind']} {name}: use another cluster")
    for name in (SYSTEM, NAMESPACE):
        if await kube.get("v1", "Namespace", name) is not None:
            raise NotThisCluster(
                f"this cluster already has a namespace {name}, which the demo would delete at its end: use another "
                "cluster, or run without --kubeconfig"
            )


async def take_away(kube: Kube) -> None:
    """Remove everything that the demo put into the cluster.

    The operator has ended, so nobody else takes the finalizers off; the simulated vendor ends with the demo, so
    nothing bills.
    """
    for kind in ("SweepCell", "GpuPod"):
        if await kube.get(*_CRD, f"{kind.lower()}s.gpupod.dev") is None:
            continue
        for item in await kube.items(API, kind):
            await kube.release(API, kind, item["metadata"]["name"], item["metadata"]["namespace"])
    for manifest in (*manifests.crds(), *_cluster_wide()):
        await kube.delete(manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"])
    for name in (SYSTEM, NAMESPACE):
        await kube.delete("v1", "Namespace", name)


def _cluster_wide() -> list[manifests.Manifest]:
    return [m for m in manifests.rbac() if m["kind"].startswith("Cluster")]
