"""The operator kills itself, by signal, at each point of each operation, on a real API server: nothing is doubled,
leaked, or left undone. The operations are those of the schedules on virtual time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from chaoskit.operations import Operation
from clusterkit.admin import Admin
from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.hosts.namespace import NamespaceHost
from gpupod_rehearsal.hosts.protocol import NamespacesUnavailable
from gpupod_rehearsal.hub.accounts import HubToken
from gpupod_rehearsal.hub.simulator import HubSimulator
from mortalkit.covering import EVERY, PLAYED, TELLING, covered
from mortalkit.forks import Forks
from mortalkit.scene import RealScene
from mortalkit.sweeps import REPO, SWEEPS, TOKEN, committed_twice, started_twice
from worldkit.clearing import clear

SHORT = ("account-changed-and-back", "adopt", "create", "migrate-asked", "patch", "start", "stop", "teardown")
"""Those that wait for nothing; `make soak` plays all."""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as made:
        yield made


@pytest.fixture
async def scene(
    control_plane: ControlPlane, admin: Admin, forks: Forks, crds: None, rbac: object, tmp_path: Path
) -> AsyncIterator[RealScene]:
    """A world of this test's own, whose pods have no inside."""
    async with RealScene(control_plane, admin, forks, tmp_path) as made:
        yield made
    await clear(admin)


@pytest.fixture
async def hub() -> AsyncIterator[HubSimulator]:
    async with HubSimulator(tokens=[HubToken("ada", secret=TOKEN)]) as running:
        running.create_repo(REPO)
        yield running


@pytest.fixture
async def inside(
    control_plane: ControlPlane,
    admin: Admin,
    forks: Forks,
    hub: HubSimulator,
    crds: None,
    rbac: object,
    tmp_path: Path,
) -> AsyncIterator[RealScene]:
    """A world whose pods have an inside. The workload was started once on each of them, and each cell sent once."""
    try:
        async with (
            NamespaceHost(tmp_path / "hosts") as hosts,
            RealScene(control_plane, admin, forks, tmp_path, hosts, hub.url) as made,
        ):
            yield made
            assert started_twice(tmp_path / "hosts") + committed_twice(hub) == []
    except NamespacesUnavailable as error:
        pytest.skip(str(error))
    finally:
        await clear(admin)


async def killed(scene: RealScene, operation: str | Operation, names: tuple[str, ...]) -> None:
    found = await covered(scene, operation, names)
    print(f"{found.operation}: killed at {len(found.places)} places")
    assert found.broken == (), str(found)
    assert found.places, "it was killed somewhere"


@pytest.mark.parametrize("operation", SHORT)
async def test_killed_by_signal_around_each_order_and_each_write_it_ends_well(scene: RealScene, operation: str) -> None:
    await killed(scene, operation, TELLING)


@pytest.mark.parametrize(
    ("operation", "names"),
    [("sweep", ("install_agent", "shell.launch", "after hub.list_prefix")), ("sweep-deleted", ("shell.drain",))],
)
async def test_killed_by_signal_around_each_act_on_a_pod_nothing_is_started_or_sent_twice(
    inside: RealScene, operation: str, names: tuple[str, ...]
) -> None:
    await killed(inside, SWEEPS[operation], names)


async def test_an_operator_that_does_not_look_for_its_pods_is_found(scene: RealScene) -> None:
    """The judge finds what it is made to find."""
    (scene.folder / "forgetful").touch()
    scene.patience = 5
    found = await covered(scene, "create", ("runpod.create_pod",))
    assert len(found.places) == 1
    assert any(sentence.startswith("I1:") for sentence in found.broken), str(found)


@pytest.mark.soak
@pytest.mark.parametrize("operation", PLAYED)
async def test_killed_by_signal_at_every_point_it_ends_well(scene: RealScene, operation: str) -> None:
    await killed(scene, operation, EVERY)


@pytest.mark.soak
@pytest.mark.parametrize("operation", sorted(SWEEPS))
async def test_killed_by_signal_at_every_point_of_a_sweep_it_ends_well(inside: RealScene, operation: str) -> None:
    await killed(inside, SWEEPS[operation], EVERY)
