"""The operator kills itself, by signal, at each point of each operation, on a real API server: nothing is doubled,
leaked, or left undone. The operations are those of the schedules on virtual time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from clusterkit.admin import Admin
from gpupod_rehearsal.controlplane import ControlPlane
from mortalkit.covering import EVERY, PLAYED, TELLING, covered
from mortalkit.forks import Forks
from mortalkit.scene import RealScene
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


async def killed(scene: RealScene, operation: str, names: tuple[str, ...]) -> None:
    found = await covered(scene, operation, names)
    print(f"{operation}: killed at {len(found.places)} places")
    assert found.broken == (), str(found)
    assert found.places, "it was killed somewhere"


@pytest.mark.parametrize("operation", SHORT)
async def test_killed_by_signal_around_each_order_and_each_write_it_ends_well(scene: RealScene, operation: str) -> None:
    await killed(scene, operation, TELLING)


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
