"""Faults of pods, hosts and accounts: what happens to the machine and what the API shows of it."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from gpupod_rehearsal.runpod.fault_catalog import CATALOG

NO_CAPACITY = (
    "There are no longer any instances available with the requested specifications. Please refresh and try again."
)


def lines(sim, pod):
    return [line.line for line in sim.cloud.pods[pod].logs]


async def test_wedge_at_boot_runs_and_bills_without_ever_publishing_a_port(api, sim):
    sim.faults.add("wedge-at-boot")
    pod = (await api.create())["id"]
    await sim.advance(3600)
    shown = await api.pod(pod)
    assert (shown["status"], shown["runtime"]["ports"], shown["ssh"]["direct"]) == ("RUNNING", [], None)
    assert shown["runtime"]["uptime"] > 3500
    assert Decimal((await api.ledger())["total"]) > 2
    assert sim.hosts.unreachable == {pod}
    healthy = await api.running(name="next")
    assert (await api.pod(healthy))["ssh"]["direct"] is not None


async def test_a_wedge_survives_stop_and_start_and_ends_with_its_fault(api, sim):
    rule = sim.faults.add("wedge-at-boot")
    pod = (await api.create())["id"]
    await sim.advance(60)
    await api.act(pod, "stop")
    await api.act(pod, "start")
    await sim.advance(60)
    assert (await api.pod(pod))["runtime"]["ports"] == []
    await api.call("DELETE", f"/_sim/faults/{rule.id}")
    assert (await api.pod(pod))["ssh"]["direct"] is not None
    assert sim.hosts.unreachable == set()


async def test_wedge_later_takes_the_port_of_a_healthy_pod_after_its_uptime(api, sim):
    sim.faults.add("wedge-later", uptime=600)
    pod = await api.running()
    await sim.advance(500)
    assert (await api.pod(pod))["ssh"]["direct"] is not None
    await sim.advance(100)
    shown = await api.pod(pod)
    assert (shown["status"], shown["runtime"]["ports"]) == ("RUNNING", [])
    assert sim.hosts.unreachable == {pod}
    assert pod in sim.hosts.running


async def test_the_wedge_lever_can_keep_the_reported_port(api, sim):
    pod = await api.running()
    assert (await api.call("POST", f"/_sim/wedge?pod={pod}&ports=kept")).status == 201
    assert (await api.pod(pod))["ssh"]["direct"] is not None
    assert sim.hosts.unreachable == {pod}


async def test_a_misreport_shows_no_port_of_a_pod_that_can_be_reached(api, sim):
    pod = await api.running()
    sim.faults.add("wedge-later", pod=pod, reachable=True)
    await sim.advance(1)
    assert (await api.pod(pod))["ssh"]["direct"] is None
    assert sim.hosts.unreachable == set()


async def test_a_wedge_aimed_at_a_data_center_strikes_only_there(api, sim):
    here = await api.running(dataCenterIds=["US-KS-2"])
    there = await api.running(dataCenterIds=["EU-RO-1"])
    sim.faults.add("wedge-later", data_center="EU-*", count=-1)
    await sim.advance(1)
    assert (await api.pod(here))["runtime"]["ports"]
    assert (await api.pod(there))["runtime"]["ports"] == []


async def test_a_runtime_flicker_is_null_for_one_look(api, sim):
    pod = await api.running()
    sim.faults.add("runtime-null-flicker")
    assert (await api.pod(pod))["runtime"] is None
    assert (await api.pod(pod))["runtime"] is not None


async def test_a_stale_port_is_reported_for_ninety_seconds_after_a_start(api, sim):
    pod = await api.running()
    old = (await api.pod(pod))["ssh"]["direct"]
    sim.faults.add("stale-port-after-start")
    await api.act(pod, "stop")
    await api.act(pod, "start")
    await sim.advance(60)
    assert (await api.pod(pod))["ssh"]["direct"] == old
    await sim.advance(31)
    assert (await api.pod(pod))["ssh"]["direct"]["port"] != old["port"]


async def test_a_private_mapping_has_neither_public_port_nor_address(api, sim):
    sim.faults.add("private-mapping")
    pod = (await api.create())["id"]
    await sim.advance(60)
    shown = await api.pod(pod)
    assert shown["runtime"]["ports"] == [{"private": 22, "public": None, "type": "tcp", "ip": None}]
    assert shown["ssh"]["direct"] is None


async def test_a_zero_gpu_start_shows_no_gpus_and_bills(api, sim):
    sim.faults.add("zero-gpu")
    pod = (await api.create())["id"]
    await sim.advance(60)
    shown = await api.pod(pod)
    assert (shown["gpu"]["count"], shown["runtime"]["gpus"]) == (0, [])
    assert shown["cost"] > 2


async def test_a_full_host_refuses_the_start_of_a_stopped_pod(api, sim):
    pod = await api.running()
    await api.act(pod, "stop")
    sim.faults.add("full-host-on-start", count=1)
    answer = await api.act(pod, "start")
    assert answer.status == 400
    assert answer.body["detail"] == "There are not enough free GPUs on the host machine to start this pod."
    assert (await api.act(pod, "start")).status == 200


async def test_a_slow_pull_says_so_in_the_log_and_ends(api, sim):
    sim.faults.add("slow-pull", seconds=600)
    pod = (await api.create())["id"]
    await sim.advance(300)
    assert (await api.pod(pod))["status"] == "STARTING"
    assert sum("still fetching image" in line for line in lines(sim, pod)) >= 10
    await sim.advance(400)
    assert (await api.pod(pod))["ssh"]["direct"] is not None


@pytest.mark.parametrize(("params", "status"), [({}, "STARTING"), ({"status": "ERROR"}, "ERROR")])
async def test_a_bad_image_never_runs_and_the_log_says_why(api, sim, params, status):
    sim.faults.add("bad-image", **params)
    pod = (await api.create())["id"]
    await sim.advance(600)
    assert (await api.pod(pod))["status"] == status
    assert any(line.startswith("failed to pull image:") for line in lines(sim, pod))


async def test_an_error_pod_allows_start_and_terminate_but_no_stop(api, sim):
    sim.faults.add("bad-image", status="ERROR")
    pod = (await api.create())["id"]
    await sim.advance(600)
    assert (await api.act(pod, "stop")).status == 409
    sim.faults.clear()
    assert (await api.act(pod, "start")).status == 200
    await sim.advance(60)
    assert (await api.pod(pod))["status"] == "RUNNING"


@pytest.mark.parametrize("by_fault", [True, False])
async def test_an_image_larger_than_the_disk_runs_for_ever_without_runtime(api, sim, by_fault):
    image = "some/image:1" if by_fault else "ghcr.io/example/huge:1"
    if by_fault:
        sim.faults.add("disk-too-small")
    pod = (await api.create(image=image))["id"]
    await sim.advance(3600)
    shown = await api.pod(pod)
    assert (shown["status"], shown["runtime"]) == ("RUNNING", None)


async def test_an_uptime_zero_loop_never_counts(api, sim):
    sim.faults.add("uptime-zero-loop")
    pod = (await api.create())["id"]
    await sim.advance(600)
    assert (await api.pod(pod))["runtime"] == {"uptime": 0, "gpus": [], "ports": []}
    assert any("layer does not exist" in line for line in lines(sim, pod))


async def test_a_crash_loop_keeps_falling_back_in_uptime(api, sim):
    sim.faults.add("crash-loop", seconds=20)
    pod = await api.running()
    seen = []
    for _ in range(6):
        await sim.advance(7)
        seen.append((await api.pod(pod))["runtime"]["uptime"])
    assert max(seen) < 20
    assert seen != sorted(seen)


async def test_a_dead_host_ends_its_containers_bills_nothing_and_refuses_new_pods(api, sim):
    pod = await api.running(dataCenterIds=["US-KS-2"])
    host = sim.cloud.pods[pod].host
    rule = sim.faults.add("host-death", host=host)
    await sim.advance(1)
    shown = await api.pod(pod)
    assert (shown["status"], shown["runtime"]) == ("RUNNING", None)
    assert pod not in sim.hosts.running
    billed = (await api.ledger())["total"]
    await sim.advance(600)
    assert (await api.ledger())["total"] == billed
    others = {sim.cloud.pods[(await api.create(dataCenterIds=["US-KS-2"]))["id"]].host for _ in range(3)}
    assert host not in others
    await api.call("DELETE", f"/_sim/faults/{rule.id}")
    await sim.advance(60)
    assert (await api.pod(pod))["ssh"]["direct"] is not None


async def test_a_host_death_can_show_as_error(api, sim):
    pod = await api.running()
    sim.faults.add("host-death", host=sim.cloud.pods[pod].host, status="ERROR")
    await sim.advance(1)
    assert (await api.pod(pod))["status"] == "ERROR"
    assert (await api.act(pod, "start")).status == 400


async def test_somebody_stops_or_deletes_the_pod_in_the_console(api, sim):
    stopped, deleted = await api.running(name="a"), await api.running(name="b")
    sim.faults.add("outside-stop", pod="a", uptime=200)
    sim.faults.add("outside-terminate", pod="b", uptime=300)
    await sim.advance(200)
    assert (await api.pod(stopped))["status"] == "EXITED"
    assert (await api.pod(deleted))["status"] == "RUNNING"
    await sim.advance(100)
    assert (await api.call("GET", f"/v2/pods/{deleted}")).status == 404


async def test_no_capacity_can_be_aimed_at_a_gpu_type_or_a_data_center(api, sim, body):
    rule = sim.faults.add("no-capacity", gpu="NVIDIA H100*")
    answer = await api.call("POST", "/v2/pods", body())
    assert (answer.status, answer.body["detail"]) == (400, NO_CAPACITY)
    assert (await api.call("POST", "/v2/pods", body(gpu={"id": "NVIDIA H200", "count": 1}))).status == 201
    sim.faults.remove(rule.id)
    sim.faults.add("no-capacity", data_center="US-*")
    assert (await api.call("POST", "/v2/pods", body(dataCenterIds=["US-KS-2"]))).status == 400
    placed = (await api.create())["id"]
    assert not sim.cloud.pods[placed].data_center.startswith("US-")


async def test_a_changed_price_shows_in_the_201_and_in_the_ledger(api, sim):
    sim.faults.add("price-change", factor=3)
    pod = await api.create()
    assert pod["cost"] == pytest.approx(3 * 2.69, abs=0.01)
    await sim.advance(3600)
    assert Decimal((await api.ledger())["total"]) > 8


async def test_a_restart_that_does_nothing_answers_200_with_the_old_start(api, sim):
    pod = await api.running()
    before = await api.pod(pod)
    sim.faults.add("restart-noop")
    answer = await api.act(pod, "restart")
    assert (answer.status, answer.body["startedAt"]) == (200, before["startedAt"])


def test_every_fault_in_the_catalog_is_played_by_a_test():
    here = Path(__file__).parent
    played = set(re.findall(r'"([a-z0-9-]+)"', "".join(path.read_text() for path in here.glob("test_*.py"))))
    assert set(CATALOG) <= played
