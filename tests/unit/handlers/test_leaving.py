"""What is written before a finalizer goes."""

from __future__ import annotations

from gpupod_operator.api.names import GPUPODS
from gpupod_operator.handlers.gpupod import settled
from gpupod_operator.ports import ApiNotFound, ApiUnavailable
from gpupod_operator.runpod import KeySource
from runtimekit.world import Kit, gpupod

HOME = "gpupod-system"


async def test_a_key_that_was_changed_meanwhile_does_not_move_what_is_left_to_its_account():
    kit = Kit()
    kit.accounts.add("new")
    raw = gpupod("a", account={"id": "old"}, released=["p1"])
    kit.world.store.put(GPUPODS, raw)
    slot = kit.world.slots.open(("ns", "a"), "uid-a")
    slot.account = await kit.accounts.open(KeySource.from_bytes(b"new"))
    assert await settled(kit.world, slot)
    assert (await kit.world.fleet.of("old")).released == {"p1"}
    assert (await kit.world.fleet.of("new")).released == set()
    await kit.world.close()


async def test_the_finalizer_stays_while_what_is_left_cannot_be_written():
    kit = Kit()
    kit.world.store.put(GPUPODS, gpupod("a", account={"id": "old"}, released=["p1"]))
    slot = kit.world.slots.open(("ns", "a"), "uid-a")
    for error in (ApiUnavailable("cut"), ApiNotFound("the operator's namespace")):
        kit.cluster.down["config"] = error
        assert not await settled(kit.world, slot)
    kit.cluster.down.clear()
    assert await settled(kit.world, slot)
    assert len(kit.cluster.configs) == 1
    await kit.world.close()
