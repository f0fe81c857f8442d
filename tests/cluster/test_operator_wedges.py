"""Hosts and images that fail: named with what to do, moved once and to another host, and nothing is ended too early."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from gpupod_rehearsal.demo.stage import NAMESPACE
from worldkit.fixtures import Theatre, condition, is_true, pod_id

WEDGE_AFTER = timedelta(seconds=5)
"""As `Theatre.apply` sets it."""
NO_SUCH_IMAGE = {"image": "runpod/pytorch:missing"}
HEALTH = {"readiness": "Mapping", "startTimeout": "4s", "sshWait": "4s", "wedgeAfter": "5s"}


async def truth(theatre: Theatre, pod: str | None) -> dict[str, Any]:
    """What really is with a pod, dead or alive."""
    pods = (await theatre.stage.sim("GET", "/_sim/pods"))["pods"]
    return dict(next(p for p in pods if p["podId"] == pod))


async def calls(theatre: Theatre, method: str, end: str) -> list[dict[str, Any]]:
    """Requests of a method whose path ends so."""
    found = (await theatre.stage.sim("GET", f"/_sim/requests?method={method}"))["requests"]
    return [r for r in found if r["path"].rstrip("/").endswith(end)]


async def rows(theatre: Theatre) -> list[str]:
    """What pods.conf holds at this moment."""
    return lines_of(await theatre.stage.kube.get("v1", "ConfigMap", "pods-conf", NAMESPACE))


async def test_an_image_that_does_not_exist_is_named_costs_one_pod_and_no_storm(theatre: Theatre) -> None:
    await theatre.apply(container=NO_SUCH_IMAGE, health=HEALTH)
    told = await theatre.until(lambda p: condition(p, "Stalled").get("reason") == "ImageError")
    pod = pod_id(told)
    stalled, reachable = condition(told, "Stalled"), condition(told, "Reachable")
    assert stalled["status"] == "True"
    assert f"gpupod.dev/migrate: {pod}" in stalled["message"]
    assert "container.image" in stalled["message"]
    assert "bills" in stalled["message"]
    assert (reachable["status"], reachable["reason"]) == ("False", "ImageError")
    assert "pull access denied for runpod/pytorch:missing" in reachable["message"]
    assert condition(told, "Wedged").get("status") != "True", "no host is to blame"
    logs = len(await calls(theatre, "GET", "/logs"))
    await theatre.lists(20)  # ten seconds: twice the wedge clock
    later = await theatre.admin.get("GpuPod", "one", namespace=NAMESPACE)
    assert later["metadata"]["resourceVersion"] == told["metadata"]["resourceVersion"], "said once"
    assert len(await calls(theatre, "GET", "/logs")) - logs <= 2, "the host's log is not read at every tick"
    assert await theatre.creates() == 1
    assert [p["podId"] for p in await theatre.alive()] == [pod]


async def test_a_corrected_image_and_the_annotation_that_was_named_bring_it_up(theatre: Theatre) -> None:
    await theatre.apply(container=NO_SUCH_IMAGE, health=HEALTH)
    bad = pod_id(await theatre.until(lambda p: condition(p, "Stalled").get("reason") == "ImageError"))
    await theatre.apply(health=HEALTH)
    edit = {"metadata": {"annotations": {"gpupod.dev/migrate": bad}}}
    await theatre.admin.patch("GpuPod", "one", edit, namespace=NAMESPACE)
    good = await theatre.until(is_true("Ready"))
    assert condition(good, "Stalled").get("status") != "True"
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(good)]
    ledger = (await theatre.stage.sim("GET", "/_sim/ledger"))["pods"]
    assert [row["podId"] for row in ledger if row["deleted"] is None] == [pod_id(good)]
    assert await theatre.creates() <= 2


async def test_a_host_that_never_publishes_is_left_once_and_for_another_host(theatre: Theatre) -> None:
    await theatre.stage.sim("POST", "/_sim/faults", {"name": "wedge-at-boot"})
    await theatre.apply(health=HEALTH)
    wedged = await theatre.until(is_true("Wedged"))
    bad = pod_id(wedged)
    assert condition(wedged, "Wedged")["reason"] == "NeverPublished"
    assert "RunPod says RUNNING and bills" in condition(wedged, "Wedged")["message"]
    moved = await theatre.until(is_true("Ready"))
    await assert_moved_once(theatre, bad, moved)
    gone, began = await truth(theatre, bad), datetime.fromisoformat((await truth(theatre, bad))["created"])
    assert datetime.fromisoformat(gone["deleted"]) - began > WEDGE_AFTER


async def test_a_host_that_loses_its_port_is_left_after_the_clock_and_not_before(theatre: Theatre) -> None:
    await theatre.apply()
    first = pod_id(await theatre.until(lambda p: is_true("Ready")(p) and is_true("Registered")(p)))
    rule = (await theatre.stage.sim("POST", f"/_sim/wedge?pod={first}"))["begins"]
    seen = await theatre.until(lambda p: condition(p, "Reachable").get("status") == "False")
    assert condition(seen, "Reachable")["reason"] == "PortLost"
    assert "bills" in seen["status"]["message"]
    wedged = await theatre.until(is_true("Wedged"))
    assert condition(wedged, "Wedged")["reason"] == "PortLost"
    moved = await theatre.until(lambda p: is_true("Ready")(p) and pod_id(p) not in (None, first))
    await assert_moved_once(theatre, first, moved)
    ended = datetime.fromisoformat((await truth(theatre, first))["deleted"])
    assert ended - datetime.fromisoformat(rule) > WEDGE_AFTER
    await theatre.until(is_true("Registered"))
    assert len(await settled_rows(theatre, moved)) == 1


async def assert_moved_once(theatre: Theatre, old: str | None, moved: dict[str, Any]) -> None:
    """One pod lives, on another host; the old one went with a receipt that says why that was allowed."""
    new = pod_id(moved)
    assert [p["podId"] for p in await theatre.alive()] == [new]
    assert (await truth(theatre, new))["host"] != (await truth(theatre, old))["host"]
    assert await theatre.creates() == 2
    assert len([r for r in await calls(theatre, "DELETE", f"/pods/{old}") if r["status"] < 300]) == 1
    receipt = moved["status"]["receipt"]
    assert receipt["podId"] == old
    assert receipt["policy"] == "artifacts: Disposable"
    assert [h["podId"] for h in moved["status"]["history"]] == [old]
    settled = await theatre.until(lambda p: ((p or {}).get("status") or {}).get("migrations") == 1, within=20)
    assert pod_id(settled) == new


async def settled_rows(theatre: Theatre, pod: dict[str, Any]) -> list[str]:
    """pods.conf once its one row holds the pod's endpoint: the file follows the status."""
    port = str(pod["status"]["endpoint"]["port"])
    conf = await published(theatre, lambda lines: [line.split()[2] for line in lines] == [port])
    return lines_of(conf)


async def published(theatre: Theatre, told: Callable[[list[str]], bool]) -> Any:
    """The ConfigMap once its rows are as told, by watch."""
    return await theatre.admin.watch_until(
        "ConfigMap", "pods-conf", lambda c: told(lines_of(c)), namespace=NAMESPACE, timeout=20
    )


def lines_of(conf: dict[str, Any] | None) -> list[str]:
    """The lines of pods.conf that are no comments."""
    text = ((conf or {}).get("data") or {}).get("pods.conf", "")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


async def test_a_look_or_two_without_a_runtime_change_nothing(theatre: Theatre) -> None:
    await theatre.apply()
    await flickers(theatre, await theatre.until(lambda p: is_true("Ready")(p) and is_true("Registered")(p)), times=1)


async def test_looks_without_a_runtime_do_not_add_up_over_recoveries(theatre: Theatre) -> None:
    await theatre.apply()
    await flickers(theatre, await theatre.until(lambda p: is_true("Ready")(p) and is_true("Registered")(p)), times=3)


async def flickers(theatre: Theatre, ready: dict[str, Any], *, times: int) -> None:
    """Two looks at a time find no runtime, one less than `health.confirmations`: nothing is told, dropped or ended."""
    pod, before = pod_id(ready), await settled_rows(theatre, ready)
    for _ in range(times):
        flicker = {"name": "runtime-null-flicker", "count": 2, "target": {"pod": pod}}
        await theatre.stage.sim("POST", "/_sim/faults", flicker)
        for _ in range(4):
            await theatre.lists(1)
            now = await theatre.admin.get("GpuPod", "one", namespace=NAMESPACE)
            assert is_true("Ready")(now)
            assert is_true("Reachable")(now)
            assert await rows(theatre) == before
    faults = (await theatre.stage.sim("GET", "/_sim/faults"))["faults"]
    assert [rule["hits"] for rule in faults] == [2] * times, "the flicker was really played"
    assert [p["podId"] for p in await theatre.alive()] == [pod]
    assert not await calls(theatre, "DELETE", f"/pods/{pod}")
    assert await theatre.creates() == 1


async def test_a_port_that_comes_back_before_the_clock_is_up_ends_nothing(theatre: Theatre) -> None:
    await theatre.apply()
    first = pod_id(await theatre.until(is_true("Ready")))
    rule = (await theatre.stage.sim("POST", f"/_sim/wedge?pod={first}"))["id"]
    await theatre.until(lambda p: condition(p, "Reachable").get("status") == "False")
    async with theatre.stage.session.delete(f"{theatre.stage.runpod_url}/_sim/faults/{rule}") as answer:
        assert answer.status == 204
    again = await theatre.until(is_true("Ready"))
    assert pod_id(again) == first
    await theatre.lists(14)  # seven seconds: the old clock would be up
    now = await theatre.admin.get("GpuPod", "one", namespace=NAMESPACE)
    assert is_true("Ready")(now)
    assert "episode" not in now["status"]
    assert [p["podId"] for p in await theatre.alive()] == [first]
    assert await theatre.creates() == 1


async def test_an_old_port_after_a_start_is_corrected_and_does_not_come_back(theatre: Theatre) -> None:
    """S03"""
    await theatre.apply()
    ready = await theatre.until(lambda p: is_true("Ready")(p) and is_true("Registered")(p))
    old = ready["status"]["endpoint"]["port"]
    await settled_rows(theatre, ready)
    await theatre.apply(state="Stopped")
    await theatre.until(lambda p: ((p or {}).get("status") or {}).get("phase") == "Stopped")
    await published(theatre, lambda lines: not lines)
    await theatre.stage.sim("POST", "/_sim/faults", {"name": "stale-port-after-start", "params": {"seconds": 4}})
    await theatre.apply(state="Running")
    fresh = await theatre.until(
        lambda p: is_true("Ready")(p) and (p or {})["status"]["endpoint"]["port"] != old, within=40
    )
    live = (await truth(theatre, pod_id(ready)))["ports"]
    assert fresh["status"]["endpoint"]["port"] in [port[1] for port in live]
    assert fresh["status"]["endpoint"]["port"] != old
    await settled_rows(theatre, fresh)
    for _ in range(6):
        await theatre.lists(1)
        assert [int(row.split()[2]) for row in await rows(theatre)] == [fresh["status"]["endpoint"]["port"]]
    assert pod_id(fresh) == pod_id(ready)
    assert condition(fresh, "Wedged").get("status") != "True"
    assert await theatre.creates() == 1
