"""The ledger: every second of every pod, stopped disk and volume is paid by somebody."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gpupod_rehearsal.runpod import Account, ApiKey, Blueprint, RunPodSimulator, VirtualClock

H100 = Decimal("2.69")
GB = Decimal("0.10") / 730


def near(value: str, wanted: Decimal) -> bool:
    return abs(Decimal(value) - wanted) < Decimal("1e-9")


async def test_a_running_pod_pays_for_gpus_and_disks_from_its_creation_by_the_second(api, sim):
    await api.create(disk=20, mounts={"persistent": {"size": 50, "path": "/workspace"}})
    await sim.advance(1800)
    row = (await api.ledger())["pods"][0]
    assert near(row["billed"], (H100 + 70 * GB) / 2)
    assert row["secondsRunning"] == "1800.0"
    assert row["owner"] == "instance/default/trainer/uid-1"


async def test_a_stopped_pod_pays_double_for_its_volume_while_the_api_says_zero(api, sim):
    pod = await api.running(mounts={"persistent": {"size": 50, "path": "/workspace"}})
    await api.act(pod, "stop")
    before = Decimal((await api.ledger())["pods"][0]["billed"])
    await sim.advance(3600)
    row = (await api.ledger())["pods"][0]
    assert near(row["billed"], before + 50 * 2 * GB)
    assert Decimal(row["secondsStopped"]) == 3600
    assert (await api.pod(pod))["cost"] == 0.0


async def test_nothing_is_billed_after_the_end(api, sim):
    pod = await api.running()
    await api.act(pod, "terminate")
    before = await api.ledger()
    await sim.advance(86_400)
    assert (await api.ledger())["pods"][0]["billed"] == before["pods"][0]["billed"]
    assert before["pods"][0]["deleted"] is not None


async def test_a_network_volume_bills_without_any_pod(api, sim):
    await api.call("POST", "/v2/network-volumes", {"name": "v", "size": 100, "dataCenter": "US-KS-2"})
    await sim.advance(3600)
    assert near((await api.ledger())["total"], 100 * Decimal("0.07") / 730)


async def test_the_balance_falls_with_the_ledger(api, sim):
    await api.create()
    await sim.advance(7200)
    spent = Decimal((await api.ledger())["total"])
    balance = (await api.call("GET", "/v2/billing/balance")).body
    assert balance["billingMode"] == "PREPAID"
    assert balance["balanceAmount"] == pytest.approx(float(500 - spent))


async def test_bills_lag_an_hour_and_keep_pods_that_are_gone(api, sim):
    pod = await api.running()
    await api.act(pod, "terminate")
    path = f"/v2/billing/pods?bucketSize=hour&lastN=3&podId={pod}"
    assert (await api.call("GET", path)).body["records"] == []
    await sim.advance(3700)
    bill = (await api.call("GET", path)).body
    assert bill["metadata"]["uniquePodCount"] == 1
    spent = float((await api.ledger())["total"])
    assert bill["metadata"]["totals"]["totalAmount"] == pytest.approx(spent)


async def test_a_create_without_money_or_over_the_spend_cap_is_402(api, sim, body):
    account = sim.cloud.accounts["acct_main"]
    account.spend_limit = Decimal(3)
    await api.create()
    capped = await api.call("POST", "/v2/pods", body())
    assert (capped.status, "spend limit" in capped.body["detail"]) == (402, True)
    account.spend_limit, account.deposited = Decimal(80), Decimal(1)
    poor = await api.call("POST", "/v2/pods", body())
    assert (poor.status, "balance" in poor.body["detail"]) == (402, True)
    assert len(await api.listed()) == 1


async def test_without_money_the_billing_job_stops_pods_with_a_network_volume_and_deletes_the_others(api, sim):
    volume = await api.call("POST", "/v2/network-volumes", {"name": "v", "size": 50, "dataCenter": "US-TX-3"})
    mounts = {"network": [{"volumeId": volume.body["id"], "path": "/workspace"}]}
    kept = await api.running(mounts=mounts, gpu={"id": "NVIDIA H100 NVL", "count": 1})
    lost = await api.running()
    sim.faults.add("balance-zero", account="acct_main")
    await sim.advance(301)
    assert await api.listed() == [kept]
    assert (await api.pod(kept))["status"] == "EXITED"
    assert (await api.call("GET", f"/v2/pods/{lost}")).status == 404


async def test_the_billing_factor_makes_a_second_cost_a_minute():
    plan = Blueprint(billing_factor=Decimal(60), accounts=[Account("a", keys=[ApiKey("main", "k")])])
    async with RunPodSimulator(clock=VirtualClock(), blueprint=plan) as sim:
        cloud = sim.cloud
        from gpupod_rehearsal.runpod.create import create

        body = {"name": "p", "image": "i", "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 1}, "disk": 20}
        create(cloud, cloud.accounts["a"], body)
        await sim.advance(60)
        assert near(str(cloud.ledger.spent(cloud.now)), H100 + 20 * GB)


async def test_orphans_are_stamped_pods_whose_object_is_not_alive(api):
    pod = await api.create()
    await api.call("POST", "/_sim/foreign", {"name": "nobodys"})
    assert [p["podId"] for p in (await api.call("GET", "/_sim/orphans")).body["orphans"]] == [pod["id"]]
    assert (await api.call("GET", "/_sim/orphans?live=uid-1")).body["orphans"] == []
