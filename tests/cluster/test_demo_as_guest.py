"""The demo on a cluster that is there already: left as it was found, and not entered where something is ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterkit.admin import Admin
from clusterkit.fixtures import admin_of
from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.demo.guest import NotThisCluster
from gpupod_rehearsal.demo.stage import Stage, StageOptions
from worldkit.fixtures import Theatre, is_true

CLUSTER_WIDE = ("CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding")


@pytest.fixture
def somebodys(tmp_path: Path) -> Iterator[ControlPlane]:
    with ControlPlane.start(tmp_path / "somebodys", progress=lambda _: None) as plane:
        plane.start_controllers(("namespace-controller",), progress=lambda _: None)
        yield plane


def guest(plane: ControlPlane) -> Stage:
    return Stage(StageOptions(kubeconfig=plane.access.kubeconfig, say=lambda _: None, hosts="null"))


async def everything(admin: Admin) -> set[tuple[str, str]]:
    found = {(kind, o["metadata"]["name"]) for kind in CLUSTER_WIDE for o in await admin.list(kind)}
    return found | {("Namespace", o["metadata"]["name"]) for o in await admin.list("Namespace")}


async def test_a_cluster_is_left_as_it_was_found_with_a_pod_still_rented(somebodys: ControlPlane) -> None:
    async with admin_of(somebodys) as admin:
        before = await everything(admin)
        async with guest(somebodys) as stage:
            theatre = Theatre(stage, admin)
            await theatre.apply()
            await theatre.until(is_true("Ready"))
            assert await everything(admin) != before
        for name in ("demo", "gpupod-system"):
            await admin.watch_until("Namespace", name, lambda n: n is None, timeout=60)
        await admin.watch_until("CustomResourceDefinition", "gpupods.gpupod.dev", lambda c: c is None, timeout=30)
        assert await everything(admin) == before


@pytest.mark.parametrize("name", ["demo", "gpupod-system"])
async def test_a_namespace_of_that_name_is_somebodys_and_stays(somebodys: ControlPlane, name: str) -> None:
    async with admin_of(somebodys) as admin:
        await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        before = await everything(admin)
        with pytest.raises(NotThisCluster, match=f"namespace {name}"):
            async with guest(somebodys):
                pass
        assert await everything(admin) == before


async def test_a_cluster_with_our_crds_is_not_entered(somebodys: ControlPlane) -> None:
    async with admin_of(somebodys) as admin, guest(somebodys):
        with pytest.raises(NotThisCluster, match="real money"):
            async with guest(somebodys):
                pass
        assert await admin.find("CustomResourceDefinition", "gpupods.gpupod.dev") is not None
