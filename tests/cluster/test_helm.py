"""The chart, by helm itself: linted, rendered with each option, equal to kustomize's, installed and taken away."""

from __future__ import annotations

import asyncio
import copy
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterkit import Admin
from clusterkit.fixtures import admin_of
from gpupod_rehearsal.controlplane import ControlPlane
from helmkit.program import CHART, HelmRefused, helm

ROOT = Path(__file__).parents[2]
SYSTEM = "gpupod-system"
OPTIONS: dict[str, dict[str, Any]] = {
    "settings": {
        "settings": {
            "maxHourlyAccount": "25.00",
            "maxPods": 0,
            "reapOrphans": True,
            "observeEvery": "30s",
            "logLevel": "DEBUG",
        }
    },
    "namespaced": {"settings": {"watchNamespaces": ["a", "b"], "instanceId": "mine"}},
    "digest": {"image": {"digest": "sha256:" + "0" * 64}, "imagePullSecrets": [{"name": "pull"}]},
    "placing": {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "podAnnotations": {"example.org/team": "ml"},
    },
    "monitored": {"podMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "bare": {
        "networkPolicy": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
        "crds": {"install": False},
        "uninstallCheck": {"enabled": False},
    },
}


def rendered(home: Path, values: dict[str, Any] | None = None) -> dict[tuple[str, str, str], Any]:
    """Objects by (kind, namespace, name)."""
    file = home / "values.yaml"
    file.write_text(yaml.safe_dump(values or {}))
    text = helm("template", "gpupod-operator", str(CHART), "-n", SYSTEM, "-f", str(file), home=home)
    return by_key(text)


def by_key(text: str) -> dict[tuple[str, str, str], Any]:
    objects = [o for o in yaml.safe_load_all(text) if o]
    return {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in objects}


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """Without what only Helm writes."""
    item = copy.deepcopy(item)
    metadata = item["metadata"]
    for name in ("helm.sh/chart", "app.kubernetes.io/managed-by"):
        metadata.get("labels", {}).pop(name, None)
    metadata.get("annotations", {}).pop("helm.sh/resource-policy", None)
    for empty in ("annotations", "labels"):
        if not metadata.get(empty, True):
            del metadata[empty]
    return item


def test_it_has_no_fault_that_helm_finds(tmp_path: Path) -> None:
    told = helm("lint", "--strict", str(CHART), home=tmp_path)
    assert "0 chart(s) failed" in told


def test_it_renders_what_kustomize_renders(control_plane: ControlPlane, tmp_path: Path) -> None:
    order = [str(control_plane.program("kubectl")), "kustomize", str(ROOT / "manifests" / "overlays" / "default")]
    by_kustomize = by_key(subprocess.run(order, check=True, capture_output=True, text=True).stdout)
    # Helm makes the namespace from its command line, and asks before an uninstall, which kustomize cannot.
    del by_kustomize["Namespace", "", SYSTEM]
    by_helm = rendered(tmp_path)
    del by_helm["Job", SYSTEM, "gpupod-operator-uninstall-check"]
    assert {k: plain(v) for k, v in by_helm.items()} == {k: plain(v) for k, v in by_kustomize.items()}


@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_renders(tmp_path: Path, option: str) -> None:
    objects = rendered(tmp_path, OPTIONS[option])
    (container,) = objects["Deployment", SYSTEM, "gpupod-operator"]["spec"]["template"]["spec"]["containers"]
    kinds = {kind for kind, _, _ in objects}
    if option == "settings":
        told = container["args"]
        for pair in (["--max-hourly-account", "25.00"], ["--max-pods", "0"], ["--observe-every", "30s"]):
            assert told[told.index(pair[0]) + 1] == pair[1]
        assert "--reap-orphans" in told
    if option == "namespaced":
        assert not {kind for kind in kinds if kind.startswith("Cluster")}
        assert {ns for kind, ns, name in objects if (kind, name) == ("Role", "gpupod-operator-served")} == {"a", "b"}
    if option == "digest":
        assert container["image"].endswith("@sha256:" + "0" * 64)
    if option == "monitored":
        assert objects["PodMonitor", SYSTEM, "gpupod-operator"]["metadata"]["labels"]["release"] == "prometheus"
    if option == "bare":
        assert not kinds & {"NetworkPolicy", "PodDisruptionBudget", "CustomResourceDefinition", "Job"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"settings": {"watchNamespaces": ["a"]}}, "settings.watchNamespaces needs settings.instanceId"),
        ({"settings": {"maxPod": 3}}, "maxPod"),
        ({"settings": {"timerGrace": "ten"}}, "timerGrace"),
    ],
    ids=["no instance", "a typo", "no duration"],
)
def test_wrong_values_are_refused_with_their_name(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    with pytest.raises(HelmRefused, match=said):
        rendered(tmp_path, values)


@asynccontextmanager
async def own_cluster(folder: Path) -> AsyncIterator[tuple[ControlPlane, Admin]]:
    async with ControlPlane.start(folder, progress=lambda _: None) as plane, admin_of(plane) as admin:
        yield plane, admin


async def test_it_is_installed_upgraded_with_its_crds_rolled_back_and_taken_away(tmp_path: Path) -> None:
    """No node here: what the Job before an uninstall does is the end-to-end test's."""
    async with own_cluster(tmp_path / "plane") as (plane, admin):

        async def run(*arguments: str) -> str:
            access = ("--kubeconfig", str(plane.access.kubeconfig), "-n", SYSTEM)
            return await asyncio.to_thread(helm, *arguments, *access, home=tmp_path)

        await run("install", "gpupod-operator", str(CHART), "--create-namespace")
        older = await admin.get("CustomResourceDefinition", "gpupods.gpupod.dev")
        # as an older version had it: without a column
        versions = older["spec"]["versions"]
        columns = versions[0]["additionalPrinterColumns"]
        cut = [{**versions[0], "additionalPrinterColumns": columns[1:]}]
        await admin.patch("CustomResourceDefinition", "gpupods.gpupod.dev", {"spec": {"versions": cut}})
        await run("upgrade", "gpupod-operator", str(CHART), "--set", "replicas=2", "--force-conflicts")
        crd = await admin.get("CustomResourceDefinition", "gpupods.gpupod.dev")
        assert crd["spec"]["versions"][0]["additionalPrinterColumns"] == columns
        assert (await admin.get("Deployment", "gpupod-operator", namespace=SYSTEM))["spec"]["replicas"] == 2
        await run("rollback", "gpupod-operator", "1", "--force-conflicts")
        assert (await admin.get("Deployment", "gpupod-operator", namespace=SYSTEM))["spec"]["replicas"] == 1
        await run("uninstall", "gpupod-operator", "--no-hooks")
        assert await admin.find("Deployment", "gpupod-operator", namespace=SYSTEM) is None
        assert await admin.find("CustomResourceDefinition", "gpupods.gpupod.dev") is not None, "all GpuPods with it"
