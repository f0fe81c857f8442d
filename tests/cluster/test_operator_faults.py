"""The vendor answers nonsense; nothing is destroyed, nothing is created, no row is dropped."""

import pytest

from gpupod_rehearsal.demo.stage import API, NAMESPACE
from worldkit.fixtures import Theatre, is_true, pod_id

LIST_FAULTS = ("empty-list", "truncated-page", "repeated-cursor", "duplicate-ids", "html-502", "cloudflare-1010")


async def rows(theatre: Theatre) -> list[str]:
    conf = await theatre.stage.kube.get("v1", "ConfigMap", "pods-conf", NAMESPACE)
    text = ((conf or {}).get("data") or {}).get("pods.conf", "")
    return [line for line in text.splitlines() if not line.startswith("#")]


async def test_lists_that_lie_neither_destroy_nor_create_nor_drop_a_row(theatre: Theatre) -> None:
    """S24, S26"""
    await theatre.apply()
    first = pod_id(await theatre.until(lambda p: is_true("Ready")(p) and is_true("Registered")(p)))
    await theatre.admin.watch_until("ConfigMap", "pods-conf", lambda c: c is not None, namespace=NAMESPACE, timeout=20)
    before = await rows(theatre)
    assert len(before) == 1
    for name in LIST_FAULTS:
        await theatre.stage.sim(
            "POST", "/_sim/faults", {"name": name, "count": 3, "target": {"method": "GET", "path": "/v2/pods"}}
        )
        await theatre.lists(6)
        assert await rows(theatre) == before, name
        assert [p["podId"] for p in await theatre.alive()] == [first], name
    await theatre.until(is_true("Ready"))
    await theatre.until(is_true("ProviderObserved"))
    assert [p["podId"] for p in await theatre.alive()] == [first]
    assert await theatre.creates() == 1


async def test_a_fresh_pod_that_answers_404_and_is_not_listed_is_kept(theatre: Theatre) -> None:
    for fault in (
        {"name": "post-create-404", "params": {"seconds": 2}},
        {"name": "list-lag", "params": {"fresh": 2, "deleted": 0}},
    ):
        await theatre.stage.sim("POST", "/_sim/faults", fault)
    await theatre.apply()
    pod = await theatre.until(is_true("Ready"))
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(pod)]
    assert await theatre.creates() == 1


async def test_a_dropped_create_is_settled_by_its_nonce(theatre: Theatre) -> None:
    await theatre.stage.sim("POST", "/_sim/faults", {"name": "create-then-drop"})
    await theatre.apply()
    pod = await theatre.until(is_true("Ready"))
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(pod)]
    assert await theatre.creates() == 1


@pytest.mark.parametrize(("policy", "left"), [("Stop", "EXITED"), ("Orphan", "RUNNING")])
async def test_deletion_policies_leave_what_they_say(theatre: Theatre, policy: str, left: str) -> None:
    await theatre.apply(deletionPolicy=policy)
    await theatre.until(is_true("Ready"))
    await theatre.stage.kube.delete(API, "GpuPod", "one", NAMESPACE)
    await theatre.admin.wait_gone("GpuPod", "one", namespace=NAMESPACE, timeout=60)
    assert [p["status"] for p in await theatre.alive()] == [left]
    theatre.released.add((await theatre.alive())[0]["podId"])


async def test_keep_running_holds_a_deletion_until_it_is_lifted(theatre: Theatre) -> None:
    await theatre.apply(keepRunning=True)
    await theatre.until(is_true("Ready"))
    await theatre.stage.kube.delete(API, "GpuPod", "one", NAMESPACE)
    held = await theatre.until(lambda p: "keepRunning" in (((p or {}).get("status") or {}).get("message") or ""))
    assert held["status"]["phase"] == "Terminating"
    assert len(await theatre.alive()) == 1
    await theatre.apply(keepRunning=False)
    await theatre.admin.wait_gone("GpuPod", "one", namespace=NAMESPACE, timeout=60)
    assert await theatre.alive() == []


async def test_an_adopted_pod_becomes_ready_and_only_that_one_is_ended(theatre: Theatre) -> None:
    stranger = await theatre.stage.sim("POST", "/_sim/foreign", {"name": "mine"})
    other = await theatre.stage.sim("POST", "/_sim/foreign", {"name": "mine"})
    theatre.adopted.add(stranger["podId"])
    await theatre.apply(adopt={"podId": stranger["podId"]})
    pod = await theatre.until(is_true("Ready"))
    assert pod_id(pod) == stranger["podId"]
    await theatre.stage.kube.delete(API, "GpuPod", "one", NAMESPACE)
    await theatre.admin.wait_gone("GpuPod", "one", namespace=NAMESPACE, timeout=60)
    assert [p["podId"] for p in await theatre.alive()] == [other["podId"]]
    assert await theatre.creates() == 0


async def test_a_hand_edited_map_is_restored(theatre: Theatre) -> None:
    await theatre.apply()
    await theatre.until(is_true("Registered"))
    await theatre.admin.watch_until("ConfigMap", "pods-conf", lambda c: c is not None, namespace=NAMESPACE, timeout=20)
    edit = {"data": {"pods.conf": "evil 1.2.3.4 22 1 H100 evil\n"}}
    await theatre.admin.patch("ConfigMap", "pods-conf", edit, namespace=NAMESPACE)
    await theatre.apply("two")  # any committed change of the namespace makes the writer look again
    await theatre.until(is_true("Registered"), "two")
    await theatre.admin.watch_until(
        "ConfigMap",
        "pods-conf",
        lambda c: c is not None and "evil" not in c["data"]["pods.conf"] and "two" in c["data"]["pods.conf"],
        namespace=NAMESPACE,
        timeout=30,
    )
    assert len(await rows(theatre)) == 2
