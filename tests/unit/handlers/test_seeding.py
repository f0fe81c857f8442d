"""What the served world starts from."""

from __future__ import annotations

import asyncio

import kopf
import pytest

from gpupod_operator.api.names import GPUPODS, SWEEPCELLS
from gpupod_operator.handlers import lifecycle
from gpupod_operator.ports import ApiForbidden
from runtimekit.world import Kit, gpupod, sweepcell

HOME = "gpupod-system"


def activities(kit: Kit) -> dict[str, kopf.ActivityFn]:
    """The startup and cleanup hooks by id, as kopf would call them."""
    registry = kopf.OperatorRegistry()
    lifecycle.register(registry, kit.world)
    return {handler.id: handler.fn for handler in registry._activities.get_all_handlers()}


def filled(**settings: object) -> Kit:
    kit = Kit(rights={"mine", HOME}, **settings)
    for namespace in ("mine", "theirs"):
        kit.cluster.put(GPUPODS, gpupod("p", namespace=namespace, uid=f"uid-{namespace}"))
        kit.cluster.put(SWEEPCELLS, sweepcell("c", namespace=namespace, uid=f"uid-c-{namespace}"))
        kit.cluster.configs[namespace, "pods-conf"] = {
            "metadata": {"labels": {"app.kubernetes.io/managed-by": "gpupod-operator"}},
            "data": {"pods.conf": "old\n"},
        }
    return kit


async def test_with_watched_namespaces_no_other_is_listed_marked_or_written():
    kit = filled(watch_namespaces=("mine",))
    hooks = activities(kit)
    await hooks["seed"]()
    try:
        assert [raw["metadata"]["namespace"] for raw in kit.world.store.all(GPUPODS)] == ["mine"]
        assert [raw["metadata"]["namespace"] for raw in kit.world.store.all(SWEEPCELLS)] == ["mine"]
        async with asyncio.timeout(10):
            while ("mine", "pods-conf") in kit.cluster.configs:  # no row is shown: the map goes
                await asyncio.sleep(0.01)
        assert ("theirs", "pods-conf") in kit.cluster.configs
        assert not [call for call in kit.cluster.asked if call.split()[-1] not in {"mine", HOME}]
    finally:
        await hooks["end"]()


async def test_without_rights_on_all_namespaces_the_start_says_so():
    kit = filled()
    with pytest.raises(ApiForbidden):
        await activities(kit)["seed"]()
    assert not kit.world.store.seeded
    await kit.world.close()
