"""Two operator processes: whoever lost the Lease while it stood still changes nothing when it wakes up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpupod_rehearsal.demo.processes import Child
from gpupod_rehearsal.demo.stage import NAMESPACE, SYSTEM
from worldkit.deployment import ended
from worldkit.fixtures import Theatre, is_true, pod_id

LEASE = "gpupod-operator"


async def holder(theatre: Theatre) -> str:
    """Who leads, as soon as somebody does."""

    def led(lease: dict[str, Any] | None) -> bool:
        return bool(((lease or {}).get("spec") or {}).get("holderIdentity"))

    lease = await theatre.admin.watch_until("Lease", LEASE, led, namespace=SYSTEM)
    assert lease is not None
    return str(lease["spec"]["holderIdentity"])


async def taken_over(theatre: Theatre, before: str) -> None:
    """Return once somebody else than `before` holds the Lease."""

    def other(lease: dict[str, Any] | None) -> bool:
        return ((lease or {}).get("spec") or {}).get("holderIdentity") not in (None, "", before)

    await theatre.admin.watch_until("Lease", LEASE, other, namespace=SYSTEM, timeout=60)


@contextmanager
def frozen(child: Child) -> Iterator[None]:
    """SIGSTOP, and SIGCONT when the block ends: a machine that was suspended, or starved of CPU."""
    os.kill(child.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(child.pid, signal.SIGCONT)


async def leader_and_standby(theatre: Theatre) -> tuple[Child, Child]:
    leader = theatre.stage.operator
    assert leader is not None
    return leader, await theatre.stage.start_operator()


async def test_a_leader_that_wakes_up_after_its_lease_makes_no_further_call(theatre: Theatre) -> None:
    await theatre.apply()
    first = pod_id(await theatre.until(is_true("Ready")))
    was = await holder(theatre)
    old, _ = await leader_and_standby(theatre)
    with frozen(old):
        await taken_over(theatre, was)
        new = await holder(theatre)
        # both have reason to act on these: the new leader at once, the old one as soon as it wakes up
        await theatre.apply("two")
        await theatre.apply(state="Stopped")
        await theatre.until(is_true("Ready"), "two", within=60)
        await theatre.until(lambda pod: ((pod or {}).get("status") or {}).get("phase") == "Stopped")
        before = await theatre.mutations()
    assert await ended(old) == 0, "it sees that the Lease is lost, and ends"
    await theatre.lists(2)
    assert await theatre.mutations() == before, "nothing was asked of the vendor since it woke up"
    assert await holder(theatre) == new
    assert len(await theatre.alive()) == 2
    assert first in [p["podId"] for p in await theatre.alive()]
    assert await theatre.creates() == 2


async def test_a_create_under_way_when_the_leader_freezes_makes_one_pod(theatre: Theatre) -> None:
    """The answer comes to a process that may not write it down; the standby finds the pod by its nonce."""
    was = await holder(theatre)
    old, _ = await leader_and_standby(theatre)
    await theatre.stage.sim("POST", "/_sim/faults", {"name": "create-then-slow", "params": {"seconds": 3}})
    await theatre.apply()
    await theatre.seen(lambda pods: len(pods) == 1)
    with frozen(old):
        await taken_over(theatre, was)
        pod = await theatre.until(is_true("Ready"), within=60)
        before = await theatre.mutations()
    assert await ended(old) == 0
    await theatre.lists(2)
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(pod)]
    assert await theatre.mutations() == before
    assert await theatre.creates() == 1
    again = await theatre.until(is_true("Ready"))
    assert again["status"]["attempt"] == pod["status"]["attempt"], "the late answer was written nowhere"


async def test_a_deletion_of_the_new_leader_is_not_undone_by_the_old_one(theatre: Theatre) -> None:
    await theatre.apply()
    await theatre.until(is_true("Ready"))
    was = await holder(theatre)
    old, _ = await leader_and_standby(theatre)
    with frozen(old):
        await taken_over(theatre, was)
        await theatre.admin.delete("GpuPod", "one", namespace=NAMESPACE)
        await theatre.admin.wait_gone("GpuPod", "one", namespace=NAMESPACE, timeout=60)
        before = await theatre.mutations()
    assert await ended(old) == 0
    await theatre.lists(2)
    assert await theatre.alive() == []
    assert await theatre.mutations() == before
