"""The operator is killed at its worst moments; afterwards there is exactly one pod, or none, and nothing is leaked."""

from gpupod_rehearsal.demo.stage import API, NAMESPACE
from worldkit.fixtures import Theatre, is_true, pod_id


async def restart(theatre: Theatre) -> None:
    assert theatre.stage.operator is not None
    theatre.stage.operator.kill()
    await theatre.stage.operator.wait()
    await theatre.stage.start_operator()


async def test_pod_lost_between_create_and_record_is_adopted(theatre: Theatre) -> None:
    """S13"""
    await theatre.stage.sim("POST", "/_sim/faults", {"name": "create-then-slow", "params": {"seconds": 60}})
    await theatre.apply()
    await theatre.seen(lambda pods: len(pods) == 1)
    await restart(theatre)
    pod = await theatre.until(is_true("Ready"))
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(pod)]
    assert len((await theatre.stage.sim("GET", "/_sim/ledger"))["pods"]) == 1, "no second pod was ever made"


async def test_a_create_that_answers_500_and_lands_is_adopted_once(theatre: Theatre) -> None:
    await theatre.stage.sim("POST", "/_sim/faults", {"name": "create-then-500"})
    await theatre.apply()
    pod = await theatre.until(is_true("Ready"))
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(pod)]
    assert await theatre.creates() == 1


async def test_killed_in_the_middle_of_a_migration_it_finishes_with_one_pod(theatre: Theatre) -> None:
    """S12b"""
    await theatre.apply()
    first = pod_id(await theatre.until(is_true("Ready")))
    await theatre.stage.sim("POST", f"/_sim/wedge?pod={first}")
    await theatre.seen(lambda pods: all(p["podId"] != first for p in pods))
    await restart(theatre)
    moved = await theatre.until(lambda pod: pod_id(pod) not in (None, first) and is_true("Ready")(pod))
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(moved)]
    assert moved["status"]["receipt"]["podId"] == first
    assert moved["status"]["migrations"] == 1


async def test_killed_during_a_deletion_it_ends_with_nothing_billed(theatre: Theatre) -> None:
    await theatre.apply()
    await theatre.until(is_true("Ready"))
    await theatre.stage.sim("POST", "/_sim/faults", {"name": "delete-lingers", "params": {"seconds": 4}})
    await theatre.stage.kube.delete(API, "GpuPod", "one", NAMESPACE)
    await theatre.seen(lambda pods: not pods)
    assert await theatre.admin.find("GpuPod", "one", namespace=NAMESPACE), "not before it is proven"
    await restart(theatre)
    await theatre.admin.wait_gone("GpuPod", "one", namespace=NAMESPACE, timeout=60)
    assert await theatre.alive() == []


async def test_a_standby_takes_over_and_the_dead_leader_changes_nothing_more(theatre: Theatre) -> None:
    await theatre.apply()
    first = pod_id(await theatre.until(is_true("Ready")))
    leader = theatre.stage.operator
    assert leader is not None
    await theatre.stage.start_operator()
    leader.kill()
    await leader.wait()
    await theatre.apply("two")
    await theatre.until(is_true("Ready"), "two", within=30)
    assert first in [p["podId"] for p in await theatre.alive()]
    assert await theatre.creates() == 2
