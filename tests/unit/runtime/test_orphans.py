"""The hunt for pods without an object: which accounts are looked at, what one blind account means for the others."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from gpupod_operator.api.names import GPUPODS
from gpupod_operator.core.provider import ProviderPod, ProviderState, Stamp
from gpupod_operator.ports import ApiUnavailable
from gpupod_operator.runpod import KeySource
from gpupod_operator.runtime.fleet import KEY, Fleet, config_name, parse, text_of
from gpupod_operator.runtime.orphans import OrphanHunter
from gpupod_operator.runtime.reaping import reapable
from runtimekit.world import INSTANCE, NOW, Kit, gpupod

HOME = "gpupod-system"


def pod(pod_id: str, *, uid: str = "gone", namespace: str = "ns", nonce: str = "n") -> ProviderPod:
    stamp = Stamp(f"{INSTANCE}/{namespace}/name/{uid}", nonce)
    state = ProviderState.RUNNING
    born = NOW - timedelta(hours=1)
    return ProviderPod(pod_id, "name", state, str(state), stamp=stamp, cost_per_hour=Decimal(2), created_at=born)


class Hunt:
    """A hunter in a kit; `look` is preceded by a list of each account."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.hunter = OrphanHunter(kit.world)

    async def open(self, *names: str) -> None:
        for name in names:
            self.kit.accounts.add(name)
            await self.kit.world._open(KeySource.from_bytes(name.encode()))

    async def look(self, times: int = 2) -> set[str]:
        found: set[str] = set()
        for _ in range(times):
            await self.kit.accounts.tick()
            found = {p.id for p in await self.hunter.look()}
        return found

    def metric(self, pod_id: str) -> float | None:
        return self.kit.metrics.registry.get_sample_value("gpupod_orphan_dollars_per_hour", {"pod": pod_id})


@pytest.fixture
async def hunt() -> AsyncIterator[Hunt]:
    made = Hunt(Kit())
    yield made
    await made.kit.world.close()


@pytest.fixture
async def reaper() -> AsyncIterator[Hunt]:
    made = Hunt(Kit(reap_orphans=True))
    yield made
    await made.kit.world.close()


async def test_an_orphan_is_reported_after_two_looks_that_agree_and_never_deleted(hunt: Hunt):
    await hunt.open("one")
    cloud = hunt.kit.accounts.clouds["one"]
    cloud.pods["p1"] = pod("p1")
    assert await hunt.look(1) == set()
    assert await hunt.look(1) == {"p1"}
    assert hunt.metric("p1") == 2
    assert cloud.deleted == []


async def test_a_late_ghost_is_ended_and_a_released_pod_with_the_same_nonce_is_not(hunt: Hunt):
    await hunt.open("one")
    cloud = hunt.kit.accounts.clouds["one"]
    fleet = Fleet(released=frozenset({"kept"}), nonces={"n": ("gone", NOW)})
    hunt.kit.cluster.configs[HOME, config_name("one")] = {"data": {KEY: text_of(fleet)}}
    cloud.pods |= {"kept": pod("kept"), "late": pod("late")}
    assert await hunt.look() == set()
    assert cloud.deleted == ["late"]


@pytest.mark.parametrize("blind", ["list", "fleet"])
async def test_a_blind_account_hides_nothing_of_the_others_and_keeps_what_was_known_of_it(hunt: Hunt, blind: str):
    await hunt.open("one", "two")
    clouds = hunt.kit.accounts.clouds
    clouds["one"].pods["p1"] = pod("p1")
    if blind == "fleet":
        hunt.kit.cluster.down[f"config {config_name('one')}"] = ApiUnavailable("cut")
    else:
        assert await hunt.look() == {"p1"}
        clouds["one"].refuses = True
    clouds["two"].pods["p2"] = pod("p2")
    found = await hunt.look()
    assert found == ({"p2"} if blind == "fleet" else {"p1", "p2"})
    assert hunt.metric("p2") == 2


async def test_without_the_objects_nothing_is_concluded(hunt: Hunt):
    await hunt.open("one")
    hunt.kit.accounts.clouds["one"].pods["p1"] = pod("p1")
    hunt.kit.cluster.down["list gpupods"] = ApiUnavailable("cut")
    assert await hunt.look(5) == set()


async def test_the_operators_own_account_is_hunted_though_no_object_ever_named_it(tmp_path: Path):
    key = tmp_path / "key"
    key.write_text("own")
    kit = Kit(own_key=key)
    kit.accounts.add("own").pods["p1"] = pod("p1")
    hunt = Hunt(kit)
    stop = asyncio.Event()
    running = asyncio.create_task(hunt.hunter.run(stop))
    async with asyncio.timeout(5):
        while not kit.world.opened():
            await asyncio.sleep(0)
    stop.set()
    await running
    assert await hunt.look() == {"p1"}
    await kit.world.close()


async def test_an_own_key_that_is_refused_at_the_start_is_tried_again(tmp_path: Path):
    key = tmp_path / "key"
    key.write_text("own")
    kit = Kit(own_key=key)
    cloud = kit.accounts.add("own")
    cloud.pods["p1"] = pod("p1")
    cloud.refuses = True
    hunt = Hunt(kit)
    assert await hunt.look() == set()
    cloud.refuses = False
    await hunt.look(1)  # opens it; it is listed from here on
    assert await hunt.look() == {"p1"}
    await kit.world.close()


async def test_only_the_pods_of_watched_namespaces_are_judged_by_lists_of_those_namespaces():
    kit = Kit(rights={"mine", HOME}, watch_namespaces=("mine",))
    hunt = Hunt(kit)
    await hunt.open("one")
    kit.cluster.put(GPUPODS, gpupod("a", namespace="mine", uid="here"))
    kit.cluster.put(GPUPODS, gpupod("b", namespace="theirs", uid="there"))
    kit.accounts.clouds["one"].pods = {
        "p1": pod("p1", uid="here", namespace="mine"),
        "p2": pod("p2", uid="there", namespace="theirs"),
        "p3": pod("p3", uid="gone", namespace="mine"),
    }
    assert await hunt.look() == {"p3"}
    await kit.world.close()


async def test_what_an_object_leaves_goes_to_the_account_that_its_pod_was_created_in(hunt: Hunt):
    raw = gpupod("a", account={"id": "old"}, released=["p1"])
    await hunt.kit.world.fleet.leave("new", raw, NOW)
    assert (await hunt.kit.world.fleet.of("old")).released == {"p1"}
    assert (await hunt.kit.world.fleet.of("new")).released == set()
    await hunt.kit.world.fleet.leave("new", gpupod("b", released=["p2"]), NOW)
    assert (await hunt.kit.world.fleet.of("new")).released == {"p2"}


async def test_what_an_object_leaves_is_kept_also_by_a_process_that_never_opened_its_key(hunt: Hunt):
    await hunt.kit.world.fleet.leave(None, gpupod("a", account={"id": "old"}, released=["p1"]), NOW)
    assert (await hunt.kit.world.fleet.of("old")).released == {"p1"}


async def test_objects_that_go_at_once_leave_their_ids_all_of_them(hunt: Hunt):
    going = [gpupod(f"a{n}", released=[f"p{n}"]) for n in range(20)]
    await asyncio.gather(*(hunt.kit.world.fleet.leave("one", raw, NOW) for raw in going))
    written = hunt.kit.cluster.configs[HOME, config_name("one")]["data"][KEY]
    assert parse(written).released == {f"p{n}" for n in range(20)}


BORN = NOW - timedelta(hours=1)


def reaping(**used: str) -> Fleet:
    return Fleet(used=dict.fromkeys(used, NOW), reaping_since=BORN - timedelta(minutes=1))


@pytest.mark.parametrize(
    ("fleet", "born", "told"),
    [
        (reaping(), BORN, ["p1"]),
        (reaping(p1="x"), BORN, []),
        (reaping(), BORN - timedelta(minutes=2), []),
        (reaping(), None, []),
        (Fleet(), BORN, []),
    ],
    ids=["never used", "was in use", "made before records began", "of unknown age", "no records"],
)
def test_only_an_orphan_that_provably_was_never_in_use_may_be_reaped(fleet, born, told):
    assert [p.id for p in reapable([dataclasses.replace(pod("p1"), created_at=born)], fleet)] == told


async def test_the_first_look_with_reaping_begins_the_records_and_deletes_nothing(reaper: Hunt):
    await reaper.open("one")
    cloud = reaper.kit.accounts.clouds["one"]
    cloud.pods["old"] = pod("old")
    assert await reaper.look(4) == {"old"}
    assert cloud.deleted == []
    kept = parse(reaper.kit.cluster.configs[HOME, config_name("one")]["data"][KEY])
    assert kept.reaping_since == NOW


async def test_with_records_an_orphan_that_was_never_in_use_is_deleted_and_one_that_was_is_not(reaper: Hunt):
    await reaper.open("one")
    cloud = reaper.kit.accounts.clouds["one"]
    reaper.kit.cluster.configs[HOME, config_name("one")] = {"data": {KEY: text_of(reaping(used="x"))}}
    cloud.pods |= {"used": pod("used"), "unused": pod("unused")}
    await reaper.look(2)
    assert cloud.deleted == [], "five minutes of looks have to agree, whatever the clocks say of its age"
    await reaper.look(1)
    assert cloud.deleted == ["unused"]


async def test_pods_that_come_into_use_together_are_noted_in_few_writes(hunt: Hunt):
    await hunt.open("one")
    fleet, cluster = hunt.kit.world.fleet, hunt.kit.cluster
    await fleet.note_used("one", "before", NOW, ())
    assert cluster.configs == {}, "nothing is kept where nothing was ever to be reaped"
    await fleet.begin_reaping("one", BORN)
    await asyncio.gather(*(fleet.note_used("one", f"p{n}", NOW, ()) for n in range(50)))
    kept = parse(cluster.configs[HOME, config_name("one")]["data"][KEY])
    assert set(kept.used) == {f"p{n}" for n in range(50)}


async def test_a_map_that_cannot_be_read_keeps_nobody_from_being_ready(hunt: Hunt):
    await hunt.open("one")
    fleet, cluster = hunt.kit.world.fleet, hunt.kit.cluster
    cluster.configs[HOME, config_name("one")] = {"data": {KEY: "not json"}}
    await fleet.note_used("one", "p1", NOW, ())
    cluster.configs[HOME, config_name("one")] = {"data": {KEY: text_of(reaping())}}
    await fleet.note_used("one", "p2", NOW, ())
    kept = parse(cluster.configs[HOME, config_name("one")]["data"][KEY])
    assert set(kept.used) == {"p1", "p2"}


async def test_what_has_long_ended_is_forgotten_and_what_still_runs_is_not(hunt: Hunt):
    await hunt.open("one")
    fleet, cluster = hunt.kit.world.fleet, hunt.kit.cluster
    await fleet.begin_reaping("one", BORN)
    for name in ("ended", "runs"):
        await fleet.note_used("one", name, NOW, ())
    await fleet.note_used("one", "new", NOW + timedelta(days=3), {"runs", "new"})
    kept = parse(cluster.configs[HOME, config_name("one")]["data"][KEY])
    assert set(kept.used) == {"runs", "new"}
    assert reapable([pod("ended")], kept) == (), "it comes back: nobody knows any more that it was in use"
