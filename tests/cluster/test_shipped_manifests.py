"""The shipped manifests on a real API server that refuses unknown fields, PodSecurity included."""

from pathlib import Path

import pytest
import yaml

from clusterkit import Admin, Refused
from clusterkit.fixtures import OperatorIdentity, read_manifests

MANIFESTS = Path(__file__).parents[2] / "manifests"


@pytest.mark.usefixtures("crds")
async def test_samples_are_accepted_as_they_are(admin: Admin, namespace: str):
    for name in ("gpupod.yaml", "sweepcells.yaml"):
        for manifest in yaml.safe_load_all((MANIFESTS / "samples" / name).read_text()):
            stored = await admin.apply(manifest, namespace=namespace)
            assert stored["metadata"]["name"] == manifest["metadata"]["name"]


@pytest.mark.usefixtures("crds")
async def test_demo_durations_are_accepted(admin: Admin, namespace: str):
    """The patches of the overlay, as kustomize applies them (whole values at their paths)."""
    pod = yaml.safe_load((MANIFESTS / "samples" / "gpupod.yaml").read_text())
    cell = next(iter(yaml.safe_load_all((MANIFESTS / "samples" / "sweepcells.yaml").read_text())))
    for manifest, patch in ((pod, "gpupod-durations.yaml"), (cell, "sweepcell-durations.yaml")):
        for step in yaml.safe_load((MANIFESTS / "overlays" / "demo" / patch).read_text()):
            *parents, last = step["path"].strip("/").split("/")
            target = manifest
            for part in parents:
                target = target[part]
            target[int(last) if isinstance(target, list) else last] = step["value"]
        await admin.apply(manifest, namespace=namespace)
    stored = await admin.get("GpuPod", "sweep", namespace=namespace)
    assert stored["spec"]["health"]["wedgeAfter"] == "8s"


async def test_every_manifest_of_the_base_is_accepted(admin: Admin, rbac: OperatorIdentity):
    names = ("namespace", "deployment", "networkpolicy", "poddisruptionbudget")
    for manifest in read_manifests(*(MANIFESTS / "base" / f"{name}.yaml" for name in names)):
        await admin.apply(manifest, dry_run=manifest["kind"] != "Namespace")


async def test_pod_of_the_deployment_passes_the_restricted_standard_and_a_laxer_one_does_not(
    admin: Admin, rbac: OperatorIdentity
):
    (space,) = read_manifests(MANIFESTS / "base" / "namespace.yaml")
    await admin.apply(space)
    (deployment,) = read_manifests(MANIFESTS / "base" / "deployment.yaml")
    template = deployment["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trial", "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    }
    await admin.apply(pod, namespace=rbac.namespace, dry_run=True)
    del pod["spec"]["securityContext"]["seccompProfile"]
    with pytest.raises(Refused, match="seccompProfile"):
        await admin.apply(pod, namespace=rbac.namespace, dry_run=True)
