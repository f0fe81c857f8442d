"""Leader election on a real API server; time is stepped, so that no test waits for a lease to run out."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clusterkit import Admin
from clusterkit.admin import Manifest
from clusterkit.fixtures import OperatorIdentity
from gpupod_operator.cluster.lease import Lease, LeaseTimes, suspended_time
from gpupod_operator.cluster.transport import ApiTransport
from gpupod_operator.ports import ApiForbidden, ApiUnavailable
from gpupod_rehearsal.controlplane import ControlPlane

NAME = "gpupod-operator"
FRESH = itertools.count()


class SteppedTime:
    """A clock that moves only when somebody sleeps on it or steps it; sleepers give way to each other in order."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.slept: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds
        self.on_sleep()
        await asyncio.sleep(0)


class WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class Faulty(ApiTransport):
    """The real transport, which can be cut off or made to lose the answer of a call that did reach the server."""

    cut = False
    lose_answers = 0

    async def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        if self.cut:
            raise ApiUnavailable("cut off")
        answer = await super().request(method, path, **options)
        if method == "PUT" and self.lose_answers:
            self.lose_answers -= 1
            raise ApiUnavailable("answer lost")
        return answer


@pytest.fixture
def clock() -> SteppedTime:
    return SteppedTime()


@pytest.fixture
async def transport(
    control_plane: ControlPlane,
    rbac: OperatorIdentity,
    admin: Admin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Faulty]:
    """As the shipped ServiceAccount, with no Lease left over from another test."""
    await admin.delete("Lease", NAME, namespace=rbac.namespace)
    env = control_plane.access.in_cluster_env(
        tmp_path / "sa", namespace=rbac.namespace, service_account=rbac.service_account
    )
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    async with Faulty() as opened:
        yield opened


def lease_of(
    transport: ApiTransport, clock: SteppedTime, rbac: OperatorIdentity, identity: str, **options: Any
) -> Lease:
    given: dict[str, Any] = {"namespace": rbac.namespace, "name": NAME, "clock": WallClock()}
    given |= {"monotonic": clock, "sleep": clock.sleep, **options}
    return Lease(transport, identity=identity, **given)


async def stored(admin: Admin, rbac: OperatorIdentity) -> Manifest:
    return (await admin.get("Lease", NAME, namespace=rbac.namespace))["spec"]  # type: ignore[no-any-return]


async def test_first_one_acquires_and_may_act_until_its_deadline(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity, admin: Admin
):
    lease = lease_of(transport, clock, rbac, "a")
    assert not lease.may_act()
    await lease.acquire()
    assert lease.may_act()
    assert lease.deadline == clock() + 10
    spec = await stored(admin, rbac)
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 15, 0)
    clock.seconds += 10
    assert not lease.may_act()


async def test_standby_takes_over_a_silent_leader_within_twenty_seconds_and_not_before_its_deadline(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity, admin: Admin
):
    """`kill -9` of the leader right after a renewal, which the standby sees a whole retry later."""
    leader, standby = lease_of(transport, clock, rbac, "a"), lease_of(transport, clock, rbac, "b")
    await leader.acquire()
    killed_at = clock()
    overlap: list[float] = []
    clock.on_sleep = lambda: overlap.append(clock()) if leader.may_act() and standby.may_act() else None
    clock.seconds += 2
    await standby.acquire()
    assert standby.may_act()
    assert not leader.may_act()
    assert overlap == []
    assert clock() - killed_at <= 20
    assert clock() - killed_at >= 15
    spec = await stored(admin, rbac)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)


async def test_standby_waits_as_long_as_the_leader_renews(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity
):
    renew, look, enough = asyncio.Event(), asyncio.Event(), asyncio.Event()
    acting: list[bool] = []

    async def leader_sleeps(_: float) -> None:
        look.set()
        await renew.wait()
        renew.clear()

    async def standby_sleeps(seconds: float) -> None:
        clock.seconds += seconds
        renew.set()
        await look.wait()
        look.clear()
        acting.append(leader.may_act())
        if len(acting) == 30:
            enough.set()

    leader = lease_of(transport, clock, rbac, "a", sleep=leader_sleeps)
    standby = lease_of(transport, clock, rbac, "b", sleep=standby_sleeps)
    await leader.acquire()
    keeping, waiting = asyncio.create_task(leader.keep()), asyncio.create_task(standby.acquire())
    await enough.wait()
    assert not keeping.done()
    assert not waiting.done()
    assert all(acting)
    assert clock() >= 1000 + 30
    keeping.cancel()
    waiting.cancel()
    await asyncio.gather(keeping, waiting, return_exceptions=True)


async def test_release_hands_over_at_once(transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity, admin: Admin):
    leader, standby = lease_of(transport, clock, rbac, "a"), lease_of(transport, clock, rbac, "b")
    await leader.acquire()
    await leader.release()
    assert not leader.may_act()
    assert (await stored(admin, rbac))["holderIdentity"] == ""
    before = clock()
    await standby.acquire()
    assert clock() == before
    assert standby.may_act()


async def test_release_by_one_who_lost_it_does_not_free_the_successors(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity, admin: Admin
):
    leader, standby = lease_of(transport, clock, rbac, "a"), lease_of(transport, clock, rbac, "b")
    await leader.acquire()
    await standby.acquire()
    await leader.release()
    assert (await stored(admin, rbac))["holderIdentity"] == "b"


async def test_leader_cut_off_stops_acting_before_anybody_can_take_over(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity
):
    lease = lease_of(transport, clock, rbac, "a")
    await lease.acquire()
    since = clock()
    transport.cut = True
    why = await lease.keep()
    assert "not renewed within 10 s" in why
    assert not lease.may_act()
    assert clock() - since < 15
    transport.cut = False
    clock.seconds = since
    assert not lease.may_act(), "a lost lease stays lost"


async def test_short_outage_of_the_api_server_keeps_the_leader(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity
):
    lease = lease_of(transport, clock, rbac, "a")
    await lease.acquire()
    transport.cut = True
    outage: list[float] = []

    def heal() -> None:
        outage.append(clock())
        if len(outage) == 4:
            transport.cut = False
        if len(outage) == 8:
            transport.cut = True

    clock.on_sleep = heal
    await lease.keep()
    # renewed at the fourth to the seventh try, so it acted on until ten seconds after the seventh
    assert clock() == pytest.approx(outage[6] + 10, abs=0.5)


async def test_renewal_whose_answer_is_lost_is_found_out_and_kept(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity, admin: Admin
):
    lease = lease_of(transport, clock, rbac, "a")
    await lease.acquire()
    transport.lose_answers = 1
    deadlines: list[float] = []

    def watch() -> None:
        deadlines.append(lease.deadline)
        if len(deadlines) == 5:
            transport.cut = True

    clock.on_sleep = watch
    await lease.keep()
    # the lost answer moved nothing, the next try did
    assert deadlines[1] == deadlines[0]
    assert deadlines[2] > deadlines[1]
    assert (await stored(admin, rbac))["holderIdentity"] == "a"


async def test_leader_that_was_taken_over_says_by_whom(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity, admin: Admin
):
    lease = lease_of(transport, clock, rbac, "a")
    await lease.acquire()
    await admin.patch("Lease", NAME, {"spec": {"holderIdentity": "b"}}, namespace=rbac.namespace)
    assert await lease.keep() == "taken over by b"
    assert not lease.may_act()


async def test_leader_whose_lease_was_deleted_stops(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity, admin: Admin
):
    lease = lease_of(transport, clock, rbac, "a")
    await lease.acquire()
    await admin.delete("Lease", NAME, namespace=rbac.namespace)
    await lease.keep()
    assert not lease.may_act()


async def test_two_that_start_together_make_one_leader(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity, admin: Admin
):
    leases = [lease_of(transport, clock, rbac, f"n{n}", sleep=asyncio.sleep) for n in range(6)]
    tasks = [asyncio.create_task(lease.acquire()) for lease in leases]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    winners = [lease.identity for lease in leases if lease.may_act()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert winners == [(await stored(admin, rbac))["holderIdentity"]]


async def test_longer_lease_of_another_version_is_respected(
    transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity
):
    times = LeaseTimes(duration=60, renew_deadline=40, retry=5)
    await lease_of(transport, clock, rbac, "a", times=times).acquire()
    before = clock()
    await lease_of(transport, clock, rbac, "b").acquire()
    assert clock() - before >= 60


async def test_missing_right_is_said_and_not_waited_for(transport: Faulty, clock: SteppedTime, rbac: OperatorIdentity):
    elsewhere = lease_of(transport, clock, rbac, "a", namespace="default")
    with pytest.raises(ApiForbidden, match="leases"):
        await elsewhere.acquire()
    assert clock.slept == []


@pytest.mark.parametrize("times", [(15, 15, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_would_let_two_act_are_refused(times: tuple[float, float, float]):
    with pytest.raises(ValueError, match="retry < renew_deadline < duration"):
        LeaseTimes(*times)


def test_default_clock_moves_forward():
    assert suspended_time() <= suspended_time()
