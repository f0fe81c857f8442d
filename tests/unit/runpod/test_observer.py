"""One list for everybody: sharing, suspicion, absence, in virtual time against a scripted account."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.provider import AccountIdentity, Failure, InventoryState, ProviderPod, ProviderState, Stamp
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.errors import IncompleteAnswer
from gpupod_operator.runpod.observer import AccountObserver

pytestmark = pytest.mark.looptime
OURS = AccountIdentity("acct_1", "f1", verified=True)
UNVERIFIED = AccountIdentity("f1", "f1", verified=False)
UNAVAILABLE = ProviderError(Failure.UNAVAILABLE, "502: the answer is not JSON (text/html)")


def pod(pod_id: str, **more: object) -> ProviderPod:
    return replace(ProviderPod(pod_id, pod_id, ProviderState.RUNNING, "RUNNING"), **more)


class Vendor:
    """An account as it truly is (`pods`), and the ways in which lists differ from it."""

    def __init__(self, names: str = "") -> None:
        self.pods = {name: pod(name) for name in names}
        self.who = OURS
        self.trouble: Exception | None = None
        self.account_trouble: Exception | None = None
        self.get_trouble: Exception | None = None
        self.empty = False
        self.took = 0.0
        self.lists: list[float] = []
        self.asked: list[str] = []

    async def list_pods(self) -> tuple[ProviderPod, ...]:
        self.lists.append(asyncio.get_running_loop().time())
        shown = () if self.empty else tuple(self.pods.values())
        await asyncio.sleep(self.took)
        if self.trouble is not None:
            raise self.trouble
        return shown

    async def account(self) -> AccountIdentity:
        self.asked.append("account")
        if self.account_trouble is not None:
            raise self.account_trouble
        return self.who

    async def get_pod(self, pod_id: str) -> ProviderPod:
        self.asked.append(pod_id)
        if self.get_trouble is not None:
            raise self.get_trouble
        if pod_id not in self.pods:
            raise ProviderError(Failure.NOT_FOUND, "404: pod not found")
        return self.pods[pod_id]


def observer_of(vendor: Vendor, clock, identity: AccountIdentity = OURS, **more: object) -> AccountObserver:
    return AccountObserver(vendor, identity, clock, jitter=lambda: 0.5, **more)


async def test_before_the_first_list_nothing_is_known(clock):
    inventory = observer_of(Vendor(), clock).inventory
    assert (inventory.state, inventory.sequence, inventory.complete_at) == (InventoryState.UNKNOWN, 0, None)
    assert Reason(inventory.reason) is Reason.OBSERVATION_FAILED


async def test_a_tick_lists_once(clock):
    vendor = Vendor("ab")
    inventory = await observer_of(vendor, clock).tick()
    assert (inventory.state, set(inventory.pods), inventory.sequence) == (InventoryState.COMPLETE, {"a", "b"}, 1)
    assert len(vendor.lists) == 1
    assert vendor.asked == []


# Sharing.


async def test_callers_at_the_same_time_share_one_list(clock):
    vendor = Vendor("a")
    vendor.took = 1
    observer = observer_of(vendor, clock)
    inventories = await asyncio.gather(*(observer.fresh() for _ in range(100)))
    assert len(vendor.lists) == 1
    assert all(inventory is inventories[0] for inventory in inventories)


async def test_a_list_that_began_before_the_call_is_not_fresh(clock):
    vendor = Vendor("a")
    vendor.took = 2
    observer = observer_of(vendor, clock)
    first = asyncio.create_task(observer.fresh())
    await asyncio.sleep(1.5)
    vendor.pods["b"] = pod("b")
    late = [asyncio.create_task(observer.fresh()) for _ in range(10)]
    assert set((await first).pods) == {"a"}
    for task in late:
        assert set((await task).pods) == {"a", "b"}
    assert len(vendor.lists) == 2


async def test_fresh_lists_in_a_row_keep_a_distance(clock):
    vendor = Vendor("a")
    observer = observer_of(vendor, clock, gap=1.0)
    for _ in range(4):
        await observer.fresh()
    gaps = [b - a for a, b in zip(vendor.lists, vendor.lists[1:], strict=False)]
    assert gaps == pytest.approx([1.0, 1.0, 1.0])


async def test_an_idle_observer_lists_at_once(clock):
    vendor = Vendor("a")
    observer = observer_of(vendor, clock)
    await observer.tick()
    await asyncio.sleep(5)
    began = asyncio.get_running_loop().time()
    await observer.fresh()
    assert asyncio.get_running_loop().time() == began


async def test_a_caller_that_leaves_does_not_end_the_list_of_the_others(clock):
    vendor = Vendor("a")
    vendor.took = 2
    observer = observer_of(vendor, clock)
    leaving, staying = asyncio.create_task(observer.fresh()), asyncio.create_task(observer.fresh())
    await asyncio.sleep(1)
    leaving.cancel()
    assert (await staying).fresh
    assert leaving.cancelled()


async def test_the_loop_lists_every_interval_and_counts_lists_that_others_asked_for(clock):
    vendor = Vendor("a")
    observer = observer_of(vendor, clock, interval=15.0)
    stop = asyncio.Event()
    loop = asyncio.create_task(observer.run(stop))
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(20)
    await observer.fresh()
    await asyncio.sleep(20)
    stop.set()
    await loop
    assert [at - began for at in vendor.lists] == pytest.approx([0, 15, 20, 35], abs=0.1)


async def test_the_loop_goes_on_after_a_failure_and_after_a_mistake_of_ours(clock):
    vendor = Vendor("a")
    observer = observer_of(vendor, clock, interval=1.0)
    stop = asyncio.Event()
    loop = asyncio.create_task(observer.run(stop))
    await asyncio.sleep(0.5)
    for trouble in (UNAVAILABLE, KeyError("a mistake")):
        vendor.trouble = trouble
        await asyncio.sleep(1)
        assert observer.inventory.state is InventoryState.UNKNOWN
        assert set(observer.inventory.pods) == {"a"}
    vendor.trouble = None
    await asyncio.sleep(1)
    assert observer.inventory.fresh
    stop.set()
    await loop


async def test_jitter_moves_the_ticks(clock):
    vendor = Vendor("a")
    observer = AccountObserver(vendor, OURS, clock, interval=10.0, jitter=lambda: 1.0)
    stop = asyncio.Event()
    loop = asyncio.create_task(observer.run(stop))
    await asyncio.sleep(23)
    stop.set()
    await loop
    assert vendor.lists[-1] - vendor.lists[0] == pytest.approx(22.0)


async def test_stopping_ends_the_loop_at_once(clock):
    observer = observer_of(Vendor("a"), clock, interval=3600.0)
    stop = asyncio.Event()
    loop = asyncio.create_task(observer.run(stop))
    await asyncio.sleep(1)
    began = asyncio.get_running_loop().time()
    stop.set()
    await loop
    assert asyncio.get_running_loop().time() == began


# What failed.


@pytest.mark.parametrize("error", [UNAVAILABLE, IncompleteAnswer("a page repeats a cursor")])
async def test_a_failed_list_keeps_the_pods_and_is_unknown(clock, error: ProviderError):
    vendor = Vendor("ab")
    observer = observer_of(vendor, clock)
    await observer.tick()
    vendor.trouble = error
    clock.step(15)
    inventory = await observer.fresh()
    assert (inventory.state, set(inventory.pods), inventory.sequence) == (InventoryState.UNKNOWN, {"a", "b"}, 1)
    assert inventory.at - (inventory.complete_at or inventory.at) == timedelta(seconds=15)
    assert error.detail in inventory.message


# Suspicion.


async def known(vendor: Vendor, clock, identity: AccountIdentity = OURS) -> AccountObserver:
    observer = observer_of(vendor, clock, identity)
    await observer.tick()
    vendor.asked.clear()
    return observer


async def test_an_empty_list_while_pods_answer_is_suspect_and_stays_so(clock):
    vendor = Vendor("abc")
    observer = await known(vendor, clock)
    vendor.empty = True
    for _ in range(3):
        inventory = await observer.fresh()
        assert (inventory.state, set(inventory.pods)) == (InventoryState.SUSPECT, {"a", "b", "c"})
        assert Reason(inventory.reason) is Reason.OBSERVATION_SUSPECT
        assert inventory.absent == {}
    vendor.empty = False
    assert (await observer.fresh()).fresh


async def test_a_key_of_another_account_explains_nothing(clock):
    vendor = Vendor("abc")
    observer = await known(vendor, clock)
    vendor.pods = {}
    vendor.who = AccountIdentity("acct_2", "f1", verified=True)
    inventory = await observer.fresh()
    assert (inventory.state, set(inventory.pods)) == (InventoryState.SUSPECT, {"a", "b", "c"})
    assert "acct_2" in inventory.message


async def test_pods_that_are_really_gone_are_accepted_within_the_same_list(clock):
    vendor = Vendor("abc")
    observer = await known(vendor, clock)
    vendor.pods = {}
    inventory = await observer.fresh()
    assert (inventory.state, inventory.absent) == (InventoryState.COMPLETE, {"a": 1, "b": 1, "c": 1})
    assert vendor.asked == ["account", "a", "b", "c"]
    await observer.fresh()
    assert len(vendor.asked) == 4


async def test_without_an_account_id_the_word_of_a_lost_pod_is_needed(clock):
    vendor = Vendor("abc")
    vendor.who = UNVERIFIED
    observer = await known(vendor, clock, UNVERIFIED)
    vendor.pods = {}
    assert (await observer.fresh()).fresh
    assert "a" in vendor.asked


async def test_a_pod_that_lingers_as_terminated_is_gone_for_this_purpose(clock):
    vendor = Vendor("a")
    observer = await known(vendor, clock)
    vendor.pods["a"] = pod("a", state=ProviderState.TERMINATED)
    vendor.empty = True
    assert (await observer.fresh()).absent == {"a": 1}


async def test_what_cannot_be_asked_now_stays_suspect(clock):
    vendor = Vendor("abc")
    observer = await known(vendor, clock)
    vendor.pods = {}
    for name in ("account_trouble", "get_trouble"):
        setattr(vendor, name, UNAVAILABLE)
        inventory = await observer.fresh()
        assert inventory.state is InventoryState.SUSPECT
        assert UNAVAILABLE.detail in inventory.message
        setattr(vendor, name, None)
    assert (await observer.fresh()).fresh


async def test_a_pod_whose_end_was_ordered_makes_no_list_suspect(clock):
    vendor = Vendor("a")
    observer = await known(vendor, clock)
    observer.expect_gone("a")
    vendor.pods = {}
    inventory = await observer.fresh()
    assert (inventory.state, inventory.absent, vendor.asked) == (InventoryState.COMPLETE, {"a": 1}, [])


async def test_an_order_to_end_excuses_one_end_only(clock):
    vendor = Vendor("a")
    observer = await known(vendor, clock)
    observer.expect_gone("a")
    vendor.empty = True
    await observer.fresh()
    vendor.empty = False
    await observer.fresh()
    vendor.empty = True
    assert (await observer.fresh()).state is InventoryState.SUSPECT


async def test_after_a_restart_an_empty_list_is_held_against_the_ids_in_statuses(clock):
    vendor = Vendor("ab")
    vendor.empty = True
    observer = observer_of(vendor, clock)
    observer.track("a")
    assert (await observer.tick()).state is InventoryState.SUSPECT


async def test_a_pod_too_young_to_be_listed_makes_no_list_suspect(clock):
    vendor = Vendor()
    observer = observer_of(vendor, clock)
    vendor.pods["a"] = pod("a", created_at=clock.now() - timedelta(seconds=5))
    vendor.empty = True
    observer.track("a")
    assert (await observer.tick()).fresh
    clock.step(120)
    observer.untrack("a")
    vendor.empty = False
    await observer.fresh()
    vendor.empty = True
    assert (await observer.fresh()).state is InventoryState.SUSPECT


# Absence.


async def test_an_id_tracked_while_a_list_is_under_way_is_not_judged_by_it(clock):
    vendor = Vendor("ab")
    vendor.took = 2
    observer = observer_of(vendor, clock)
    listing = asyncio.create_task(observer.fresh())
    await asyncio.sleep(1)
    observer.track("z")
    assert (await listing).absent == {}
    assert (await observer.fresh()).absent == {"z": 1}


async def test_an_untracked_id_is_no_longer_expected_on_a_list(clock):
    vendor = Vendor("abc")
    observer = observer_of(vendor, clock)
    observer.track("z")
    observer.untrack("z")
    assert (await observer.tick()).absent == {}


# Telling.

Told = list[frozenset[str] | None]


@pytest.fixture
def listening() -> Callable[[AccountObserver], Awaitable[Told]]:
    async def listen(observer: AccountObserver) -> Told:
        await observer.tick()
        told: Told = []
        observer.subscribe(told.append)
        return told

    return listen


async def test_a_changed_pod_is_told_by_its_id_and_its_uid(clock, listening):
    vendor = Vendor("ab")
    told = await listening(observer := observer_of(vendor, clock))
    stamp = Stamp("inst/ns/name/uid-1", "n")
    vendor.pods["a"] = pod("a", stamp=stamp, state=ProviderState.EXITED)
    await observer.fresh()
    assert told == [frozenset({"a", "uid-1"})]


async def test_nothing_is_told_while_nothing_changes(clock, listening):
    vendor = Vendor("ab")
    told = await listening(observer := observer_of(vendor, clock))
    for _ in range(3):
        await observer.fresh()
    assert told == []


async def test_a_flip_is_told_to_everybody_once(clock, listening):
    vendor = Vendor("ab")
    told = await listening(observer := observer_of(vendor, clock))
    vendor.trouble = UNAVAILABLE
    for _ in range(3):
        await observer.fresh()
    assert told == [None]
    vendor.trouble = None
    await observer.fresh()
    assert told == [None, None]


async def test_a_failing_subscriber_does_not_silence_the_others(clock, caplog: pytest.LogCaptureFixture):
    observer = observer_of(Vendor("a"), clock)
    told: Told = []

    def broken(_: frozenset[str] | None) -> None:
        raise RuntimeError("broken listener")

    observer.subscribe(broken)
    observer.subscribe(told.append)
    await observer.tick()
    assert told == [None]
    assert "broken listener" in caplog.text


async def test_who_left_is_told_nothing(clock):
    vendor = Vendor("a")
    observer = observer_of(vendor, clock)
    told: Told = []
    leave = observer.subscribe(told.append)
    await observer.tick()
    leave()
    vendor.trouble = UNAVAILABLE
    await observer.fresh()
    assert told == [None]
