"""The client and the observer against the simulated RunPod, in both ages of the contract, on a virtual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import aiohttp
import pytest

from gpupod_operator.core.ownership import OwnedPod, claim
from gpupod_operator.core.provider import (
    CreateRequest,
    Failure,
    Inventory,
    InventoryState,
    PatchRequest,
    ProviderPod,
    ProviderState,
    Stamp,
)
from gpupod_operator.ports import GpuProvider, ProviderError
from gpupod_operator.runpod import Accounts, Governor, IncompleteAnswer, KeySource, RunPodClient, runpod_session
from gpupod_operator.runpod.accounts import Account
from gpupod_rehearsal.runpod import Profile, RunPodSimulator, VirtualClock

H100 = "NVIDIA H100 80GB HBM3"
STAMP = Stamp("inst/default/sweep/uid-1", "n1")
REQUEST = CreateRequest(
    name="sweep-n1",
    image="runpod/pytorch:2.8",
    gpu_type_id=H100,
    gpu_count=2,
    cloud="SECURE",
    data_centers=(),
    disk_gb=50,
    ports=("22/tcp",),
    stamp=STAMP,
    persistent_gb=20,
    persistent_path="/workspace",
)
Make = Callable[..., RunPodClient]


@pytest.fixture(params=[Profile.NOVEMBER, Profile.AUGUST], ids=["november", "august"])
def profile(request: pytest.FixtureRequest) -> Profile:
    age: Profile = request.param
    return age


@pytest.fixture
async def sim(profile: Profile) -> AsyncIterator[RunPodSimulator]:
    async with RunPodSimulator(clock=VirtualClock(), profile=profile) as simulator:
        yield simulator


@pytest.fixture
async def client_of(sim: RunPodSimulator) -> AsyncIterator[Make]:
    async with runpod_session() as session:

        def make(alias: str = "main", **more: Any) -> RunPodClient:
            key = KeySource.from_bytes(sim.key(alias).encode())
            return RunPodClient(session, key, governor_of(sim), base_url=sim.url, **more)

        yield make


@pytest.fixture
def client(client_of: Make) -> RunPodClient:
    return client_of()


def governor_of(sim: RunPodSimulator) -> Governor:
    """A governor that waits in the simulator's time."""
    return Governor(monotonic=lambda: sim.clock().timestamp(), sleep=sim.advance)


class SimTime:
    """The operator's clock, showing the simulator's time."""

    def __init__(self, sim: RunPodSimulator) -> None:
        self._sim = sim

    def now(self) -> datetime:
        return self._sim.cloud.now


@pytest.fixture
async def account(sim: RunPodSimulator) -> AsyncIterator[Account]:
    accounts = Accounts(SimTime(sim), base_url=sim.url, observe_every=0.01)
    yield await accounts.open(KeySource.from_bytes(sim.key().encode()))
    await accounts.close()


def owned(pod: ProviderPod) -> OwnedPod:
    handle = claim(pod, instance="inst", uid="uid-1", adopt_id=None)
    assert isinstance(handle, OwnedPod)
    return handle


async def failure_of(call: Awaitable[object]) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await call
    return raised.value


async def running(sim: RunPodSimulator, client: RunPodClient, nonce: str = "n1") -> ProviderPod:
    request = replace(REQUEST, name=f"sweep-{nonce}", stamp=Stamp(STAMP.owner, nonce))
    pod = await client.create_pod(request, {"A": "b"})
    await sim.advance(60)
    return await client.get_pod(pod.id)


def alive(sim: RunPodSimulator) -> set[str]:
    return {pod.id for pod in sim.cloud.living()}


async def test_a_pod_s_life(sim: RunPodSimulator, client: RunPodClient):
    provider: GpuProvider = client
    made = await provider.create_pod(REQUEST, {"A": "b"})
    assert (made.state, made.stamp, made.gpu_count) == (ProviderState.PROVISIONING, STAMP, 2)
    await sim.advance(60)
    up = await provider.get_pod(made.id)
    assert (up.state, up.placed, up.gpus_visible, up.persistent_gb) == (ProviderState.RUNNING, True, 2, 20)
    endpoint = up.mapping(22)
    assert endpoint is not None
    assert endpoint.public is not None
    assert endpoint.ip is not None
    assert up.host_hint == sim.cloud.hosts[sim.cloud.pods[made.id].host].fingerprint
    assert up.cost_per_hour is not None
    assert up.cost_per_hour > 0

    stopped = await provider.stop_pod(owned(up))
    assert stopped is not None
    await sim.advance(5)
    at_rest = await provider.get_pod(made.id)
    assert (at_rest.state, at_rest.cost_per_hour, at_rest.mappings) == (ProviderState.EXITED, Decimal(0), ())
    await provider.start_pod(owned(at_rest))
    await sim.advance(60)
    again = await provider.get_pod(made.id)
    assert again.started_at is not None
    assert up.started_at is not None
    assert again.started_at > up.started_at

    await provider.delete_pod(owned(again))
    assert (await failure_of(provider.get_pod(made.id))).failure is Failure.NOT_FOUND
    assert await provider.list_pods() == ()
    assert alive(sim) == set()


async def test_the_environment_that_was_sent_arrived_with_the_stamps(sim: RunPodSimulator, client: RunPodClient):
    pod = await running(sim, client)
    assert sim.cloud.pods[pod.id].container.env == {"A": "b", "GPUPOD_OWNER": STAMP.owner, "GPUPOD_NONCE": "n1"}


async def test_ports_are_changed_in_place(sim: RunPodSimulator, client: RunPodClient):
    pod = await running(sim, client)
    changed = await client.patch_pod(owned(pod), PatchRequest(ports=("22/tcp", "8888/http")), None)
    assert changed.ports == ("22/tcp", "8888/http")
    assert changed.stamp == STAMP


async def test_every_pod_of_every_page_is_listed(sim: RunPodSimulator, client: RunPodClient, client_of: Make):
    made = {(await client.create_pod(REQUEST, {})).id for _ in range(5)}
    pods = await client_of(page_limit=2).list_pods()
    assert {pod.id for pod in pods} == made
    assert len(pods) == 5


async def test_catalog_account_and_log(sim: RunPodSimulator, client: RunPodClient, profile: Profile):
    offers = {offer.id: offer for offer in await client.gpu_offers()}
    truth = sim.cloud.gpu_types[H100]
    assert (offers[H100].price_secure, offers[H100].price_community) == (truth.secure_price, truth.community_price)
    assert offers[H100].name == truth.name
    assert isinstance(await client.ssh_keys(), tuple)
    owner = sim.cloud.accounts["acct_main"]
    volume = sim.cloud.add_volume(owner, "data", 50, "US-KS-2", "STANDARD")
    assert [found.id for found in await client.network_volumes()] == [volume.id]
    assert (await client.network_volume(volume.id)).data_center == "US-KS-2"
    assert (await failure_of(client.network_volume("nowhere"))).failure is Failure.NOT_FOUND
    if profile is Profile.NOVEMBER:
        assert (await client.balance()).mode == "PREPAID"
        assert "spendRate" in await client.account_limits()


async def test_the_host_s_log_tells_of_a_pull(sim: RunPodSimulator, client: RunPodClient):
    sim.faults.add("slow-pull", seconds=600)
    pod = await client.create_pod(REQUEST, {})
    await sim.advance(120)
    lines = await client.system_log(pod.id, 2)
    assert len(lines) == 2
    assert "still fetching image" in lines[-1]


async def test_whose_account_it_is(client_of: Make, profile: Profile):
    who, narrow = await client_of().account(), await client_of("narrow").account()
    assert who.verified is (profile is Profile.NOVEMBER)
    assert who.id == ("acct_main" if who.verified else who.key_fingerprint)
    assert (narrow.verified, narrow.id) == (False, narrow.key_fingerprint)


async def test_a_key_of_another_team_sees_nothing(sim: RunPodSimulator, client_of: Make):
    pod = await running(sim, client_of())
    stranger = client_of("other")
    assert await stranger.list_pods() == ()
    assert (await failure_of(stranger.get_pod(pod.id))).failure is Failure.NOT_FOUND
    assert (await failure_of(stranger.delete_pod(owned(pod)))).failure is Failure.NOT_FOUND
    assert alive(sim) == {pod.id}


async def test_a_key_that_may_only_read_cannot_rent(client_of: Make, sim: RunPodSimulator):
    assert (await failure_of(client_of("reader").create_pod(REQUEST, {}))).failure is Failure.FORBIDDEN
    assert alive(sim) == set()


# Faults of a create.


@pytest.mark.parametrize("fault", ["create-then-500", "create-then-drop", "create-then-garbage", "create-then-slow"])
async def test_a_create_whose_answer_is_lost_is_ambiguous_made_once_and_found_by_its_nonce(
    sim: RunPodSimulator, client_of: Make, fault: str
):
    sim.faults.add(fault)
    client = client_of(timeout=aiohttp.ClientTimeout(total=0.3))
    assert (await failure_of(client.create_pod(REQUEST, {}))).failure is Failure.AMBIGUOUS
    if fault == "create-then-slow":
        await sim.advance(200)
    assert [pod.stamp for pod in await client.list_pods()] == [STAMP]
    assert len(alive(sim)) == 1


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        ("no-capacity", Failure.NO_CAPACITY),
        ("cloudflare-1010", Failure.UNAVAILABLE),
        ("api-gone-410", Failure.API_GONE),
        ("unauthorized", Failure.UNAUTHORIZED),
        ("forbidden", Failure.FORBIDDEN),
        ("http-500", Failure.AMBIGUOUS),
        ("html-502", Failure.AMBIGUOUS),
        ("drop", Failure.AMBIGUOUS),
    ],
)
async def test_refusals_of_a_create_make_nothing(
    sim: RunPodSimulator, client: RunPodClient, fault: str, failure: Failure
):
    sim.faults.add(fault)
    assert (await failure_of(client.create_pod(REQUEST, {}))).failure is failure
    assert alive(sim) == set()


async def test_a_create_that_was_throttled_is_made_after_the_wait(sim: RunPodSimulator, client: RunPodClient):
    sim.faults.add("rate-limited", seconds=12)
    pod = await client.create_pod(REQUEST, {})
    assert alive(sim) == {pod.id}
    refused, made = sim.journal.mutations()
    assert (refused.status, made.status) == (429, 201)
    assert (made.at - refused.at).total_seconds() == 12


async def test_no_money_is_told_as_such(sim: RunPodSimulator, client: RunPodClient):
    sim.cloud.accounts["acct_main"].deposited = Decimal("0.01")
    error = await failure_of(client.create_pod(REQUEST, {}))
    assert error.failure is Failure.INSUFFICIENT_BALANCE
    sim.cloud.accounts["acct_main"].deposited = Decimal(500)
    sim.cloud.accounts["acct_main"].spend_limit = Decimal("0.50")
    assert (await failure_of(client.create_pod(REQUEST, {}))).failure is Failure.INSUFFICIENT_BALANCE


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ({"gpu_type_id": "NVIDIA H1000"}, Failure.INVALID),
        ({"min_cuda_version": "99.9"}, Failure.NO_CAPACITY),
        ({"ports": ("22/udp",)}, Failure.INVALID),
        ({"cloud": "ALL"}, Failure.INVALID),
        ({"image": "x" * 110_000}, Failure.INVALID),
        ({"persistent_gb": None, "network_volume_id": "nowhere", "network_volume_path": "/w"}, Failure.INVALID),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else str(value),
)
async def test_bad_requests_are_told_from_missing_capacity(
    sim: RunPodSimulator, client: RunPodClient, change: dict[str, Any], failure: Failure
):
    error = await failure_of(client.create_pod(replace(REQUEST, **change), {}))
    assert error.failure is failure, error.detail
    assert error.request_id
    assert alive(sim) == set()


async def test_a_wish_that_an_older_contract_lacks_is_named(client: RunPodClient, profile: Profile):
    wish = client.create_pod(replace(REQUEST, min_ram_per_gpu_gb=64), {})
    if profile is Profile.NOVEMBER:
        assert (await wish).id
        return
    error = await failure_of(wish)
    assert error.failure is Failure.INVALID
    assert "minRamPerGpu" in error.errors[0]


# Faults of a read.


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        ("html-502", Failure.UNAVAILABLE),
        ("http-500", Failure.UNAVAILABLE),
        ("cloudflare-1010", Failure.UNAVAILABLE),
        ("api-gone-410", Failure.API_GONE),
        ("unauthorized", Failure.UNAUTHORIZED),
        ("forbidden", Failure.FORBIDDEN),
        ("duplicate-ids", Failure.UNAVAILABLE),
    ],
)
async def test_a_list_with_a_fault_is_no_list(sim: RunPodSimulator, client: RunPodClient, fault: str, failure: Failure):
    await running(sim, client)
    sim.faults.add(fault)
    assert (await failure_of(client.list_pods())).failure is failure


@pytest.mark.parametrize("fault", ["truncated-page", "repeated-cursor"])
async def test_broken_pages_are_no_list(sim: RunPodSimulator, client_of: Make, profile: Profile, fault: str):
    if profile is Profile.AUGUST:
        pytest.skip("the August contract has no pages")
    client = client_of(page_limit=1)
    for _ in range(3):
        await client.create_pod(REQUEST, {})
    sim.faults.add(fault, count=2)
    assert isinstance(await failure_of(client.list_pods()), IncompleteAnswer)


async def test_what_is_new_in_an_answer_hides_nothing(sim: RunPodSimulator, client: RunPodClient):
    pod = await running(sim, client)
    sim.faults.add("unknown-fields", count=-1)
    sim.faults.add("unknown-status", count=1)
    sim.faults.add("missing-fields", count=1)
    (strange,) = await client.list_pods()
    assert (strange.id, strange.state, strange.raw_state, strange.live) == (
        pod.id,
        ProviderState.UNKNOWN,
        "MIGRATING",
        True,
    )
    assert (strange.stamp, strange.cost_per_hour, strange.mappings) == (STAMP, None, ())


# Faults of stop, start and delete.


async def test_a_full_host_refuses_the_start(sim: RunPodSimulator, client: RunPodClient):
    pod = await running(sim, client)
    await client.stop_pod(owned(pod))
    await sim.advance(5)
    sim.faults.add("full-host-on-start")
    assert (await failure_of(client.start_pod(owned(pod)))).failure is Failure.HOST_FULL


async def test_a_404_on_delete_is_no_proof(sim: RunPodSimulator, client: RunPodClient):
    pod = await running(sim, client)
    sim.faults.add("delete-404-alive")
    assert (await failure_of(client.delete_pod(owned(pod)))).failure is Failure.NOT_FOUND
    assert alive(sim) == {pod.id}


async def test_a_lost_answer_to_a_delete_is_ambiguous(sim: RunPodSimulator, client: RunPodClient):
    pod = await running(sim, client)
    # aiohttp itself repeats a DELETE once on a kept connection that is closed under it; the pod is addressed by its id.
    sim.faults.add("answer-lost", method="DELETE", count=-1)
    error = await failure_of(client.delete_pod(owned(pod)))
    assert error.failure in (Failure.AMBIGUOUS, Failure.NOT_FOUND)
    assert alive(sim) == set()


async def test_an_act_that_does_not_fit_the_state_is_a_conflict(sim: RunPodSimulator, client: RunPodClient):
    pod = await running(sim, client)
    assert (await failure_of(client.start_pod(owned(pod)))).failure is Failure.CONFLICT


# The quota.


async def test_the_quota_is_never_overrun_and_a_delete_still_gets_through(profile: Profile):
    async with (
        RunPodSimulator(clock=VirtualClock(), profile=profile, quotas={"minute": 30}) as sim,
        runpod_session() as session,
    ):
        client = RunPodClient(session, KeySource.from_bytes(sim.key().encode()), governor_of(sim), base_url=sim.url)
        pod = await client.create_pod(REQUEST, {})

        async def read_on() -> None:
            for _ in range(30):
                await client.get_pod(pod.id)

        held = await failure_of(read_on())
        assert (held.failure, held.status) == (Failure.THROTTLED, None)
        await client.delete_pod(owned(pod))
        assert alive(sim) == set()
        assert 429 not in [entry.status for entry in sim.journal.entries]


# The observer.


async def looks(account: Account, times: int) -> Inventory:
    inventory = account.observer.inventory
    for _ in range(times):
        inventory = await account.observer.fresh()
    return inventory


async def test_an_empty_list_while_pods_live_is_suspect(sim: RunPodSimulator, account: Account):
    pod = await running(sim, account.provider)
    assert set((await looks(account, 1)).pods) == {pod.id}
    sim.faults.add("empty-list", count=2)
    for _ in range(2):
        inventory = await looks(account, 1)
        assert (inventory.state, set(inventory.pods)) == (InventoryState.SUSPECT, {pod.id})
    assert (await looks(account, 1)).state is InventoryState.COMPLETE


async def test_a_pod_ended_in_the_console_is_gone_within_two_lists(sim: RunPodSimulator, account: Account):
    pod = await running(sim, account.provider)
    await looks(account, 1)
    sim.faults.add("outside-terminate", pod=pod.id)
    await sim.advance(5)
    inventory = await looks(account, 2)
    assert (inventory.state, inventory.absent) == (InventoryState.COMPLETE, {pod.id: 2})


async def test_a_deleted_pod_that_lingers_is_listed_until_it_is_gone(sim: RunPodSimulator, account: Account):
    pod = await running(sim, account.provider)
    await looks(account, 1)
    sim.faults.add("delete-lingers", seconds=60)
    account.observer.expect_gone(pod.id)
    await account.provider.delete_pod(owned(pod))
    assert (await looks(account, 2)).pods[pod.id].state is ProviderState.TERMINATED
    await sim.advance(61)
    assert (await looks(account, 2)).absent == {pod.id: 2}


async def test_a_list_that_lags_behind_a_create_is_complete_and_counts_the_absence(
    sim: RunPodSimulator, account: Account
):
    sim.faults.add("list-lag", fresh=30)
    pod = await account.provider.create_pod(REQUEST, {})
    account.observer.track(pod.id)
    inventory = await looks(account, 2)
    assert (inventory.state, inventory.absent) == (InventoryState.COMPLETE, {pod.id: 2})
    await sim.advance(40)
    inventory = await looks(account, 1)
    assert inventory.of_uid("uid-1")[0].id == pod.id
    assert inventory.absent == {}


async def test_an_outage_keeps_the_pods_and_ends_by_itself(sim: RunPodSimulator, account: Account):
    pod = await running(sim, account.provider)
    await looks(account, 1)
    sim.faults.add("html-502", count=3)
    told: list[frozenset[str] | None] = []
    account.observer.subscribe(told.append)
    inventory = await looks(account, 3)
    assert (inventory.state, set(inventory.pods), inventory.absent) == (InventoryState.UNKNOWN, {pod.id}, {})
    assert told == [None]
    assert (await looks(account, 1)).state is InventoryState.COMPLETE
    assert told == [None, None]


async def test_no_list_is_made_but_the_shared_one(sim: RunPodSimulator, account: Account):
    for number in range(3):
        await running(sim, account.provider, f"n{number}")
    before = len(sim.journal.entries)
    await looks(account, 1)
    assert [entry.path for entry in list(sim.journal.entries)[before:]] == ["/v2/pods"]
