"""Fixtures of a real control plane: one per test process, a namespace per test, the shipped CRDs and RBAC."""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterkit.admin import Admin, Refused
from gpupod_rehearsal.controlplane import ControlPlane, ProgressLine

ROOT = Path(__file__).parents[2]
# What a namespace deletion and owner references need; nothing else of the controller manager runs.
CONTROLLERS = ("namespace-controller", "garbage-collector-controller", "serviceaccount-controller")
_OURS = ("SweepCell", "GpuPod")


@dataclass(frozen=True)
class OperatorIdentity:
    """The shipped ServiceAccount, under which operators run in tests as they do in a cluster."""

    namespace: str
    service_account: str


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A running API server with etcd, of this test process alone: a test may stop and restart both."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    line = ProgressLine()

    def say(sentence: str) -> None:
        # A build takes minutes, during which nobody should have to guess.
        with capture.global_and_fixture_disabled():
            line(sentence)

    with ControlPlane.start(tmp_path_factory.mktemp("control-plane"), progress=say) as plane:
        with capture.global_and_fixture_disabled():
            line.close()
        yield plane


@pytest.fixture(scope="session")
def controllers(control_plane: ControlPlane) -> None:
    """Garbage collector and namespace deletion, for the tests that need them."""
    control_plane.start_controllers(CONTROLLERS, progress=ProgressLine())


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Admin]:
    """The cluster's administrator."""
    async with admin_of(control_plane) as client:
        yield client


@pytest.fixture
async def namespace(admin: Admin, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace of this test's own. Afterwards no object of ours is left in it for a later operator to find."""
    readable = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.removeprefix("test_").lower())[:40].strip("-")
    name = f"{readable}-{uuid.uuid4().hex[:6]}"
    await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    for kind in _OURS:
        await wipe(admin, kind, name)
    await admin.delete("Namespace", name)


@pytest.fixture(scope="session")
def crds(control_plane: ControlPlane) -> None:
    """The shipped CRDs, applied and established."""

    async def install() -> None:
        async with admin_of(control_plane) as client:
            for manifest in read_manifests(*sorted((ROOT / "crds").glob("*.yaml"))):
                if manifest["kind"] == "CustomResourceDefinition":
                    await apply_crd(client, manifest)

    asyncio.run(install())


@pytest.fixture(scope="session")
def rbac(control_plane: ControlPlane) -> OperatorIdentity:
    """The shipped ServiceAccount, ClusterRole, Role and their bindings; returns whom they are for."""
    base = ROOT / "manifests" / "base"
    default = yaml.safe_load((base / "kustomization.yaml").read_text()).get("namespace", "gpupod-system")
    manifests = list(read_manifests(base / "rbac.yaml"))
    account = next(manifest for manifest in manifests if manifest["kind"] == "ServiceAccount")

    async def install() -> None:
        async with admin_of(control_plane) as client:
            for manifest in manifests:
                await _apply_in(client, manifest, default)

    asyncio.run(install())
    return OperatorIdentity(account["metadata"].get("namespace", default), account["metadata"]["name"])


def admin_of(plane: ControlPlane) -> Admin:
    """An administrator's client; use it in `async with`."""
    return Admin.by_kubeconfig(plane.access.url, plane.access.ca, plane.access.kubeconfig)


def read_manifests(*files: Path) -> Iterator[dict[str, Any]]:
    """The documents of YAML files, in order, without the empty ones."""
    for file in files:
        yield from filter(None, yaml.safe_load_all(file.read_text(encoding="utf-8")))


async def apply_crd(admin: Admin, manifest: dict[str, Any]) -> None:
    """Apply a CRD and return once the API server serves it."""
    await admin.apply(manifest)

    def established(crd: dict[str, Any] | None) -> bool:
        # A CRD that was applied this moment has a status with null in it.
        conditions = ((crd or {}).get("status") or {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    await admin.watch_until("CustomResourceDefinition", manifest["metadata"]["name"], established)
    # Established comes a moment before the path is served, and nothing can be watched for that.
    async with asyncio.timeout(10):
        while not await _served(admin, manifest["spec"]["names"]["kind"]):
            await asyncio.sleep(0.05)


async def _apply_in(admin: Admin, manifest: dict[str, Any], default: str) -> None:
    # What kustomize's `namespace:` does to these kinds.
    for subject in manifest.get("subjects", ()):
        if subject["kind"] == "ServiceAccount":
            subject.setdefault("namespace", default)
    namespace = None if manifest["kind"].startswith("Cluster") else manifest["metadata"].get("namespace", default)
    if manifest["kind"] == "Namespace":
        namespace = None
    if namespace is not None:
        await admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    await admin.apply(manifest, namespace=namespace)


async def _served(admin: Admin, kind: str) -> bool:
    try:
        await admin.list(kind)
    except LookupError:
        return False
    except Refused as refusal:
        if refusal.status != 404:
            raise
        return False
    return True


async def wipe(admin: Admin, kind: str, namespace: str) -> None:
    """Delete all objects of one of our kinds in a namespace, past their finalizers."""
    try:
        left = await admin.list(kind, namespace=namespace)
    except LookupError:
        # This run has not installed our CRDs.
        return
    for item in left:
        name = item["metadata"]["name"]
        await admin.delete(kind, name, namespace=namespace)
        if await admin.find(kind, name, namespace=namespace) is not None:
            # No operator runs any more; the simulated vendor ends with the test, too.
            await admin.patch(kind, name, {"metadata": {"finalizers": None}}, namespace=namespace)
