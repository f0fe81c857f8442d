"""Events wait behind the work, in order, and what cannot be said is counted and logged."""

import asyncio

from gpupod_operator.core.plan import Transition
from gpupod_operator.ports import ApiUnavailable
from gpupod_operator.runtime import teller as module
from gpupod_operator.runtime.metrics import Metrics
from gpupod_operator.runtime.teller import Teller

RAW = {"metadata": {"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "7", "labels": {}}, "status": {}}


class Cluster:
    def __init__(self, *, fails=()):
        self.events, self.fails, self.gate = [], fails, asyncio.Event()

    async def emit(self, obj, *, kind, reason, message, warning, action):
        await self.gate.wait()
        if reason in self.fails:
            raise ApiUnavailable("cut")
        self.events.append((obj["metadata"]["name"], obj["apiVersion"], kind, reason, warning))


def lost(metrics):
    return metrics.registry.get_sample_value("gpupod_events_unwritten_total")


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


async def test_telling_waits_for_nobody_and_keeps_the_order():
    cluster, metrics = Cluster(fails={"Two"}), Metrics()
    teller = Teller(cluster, metrics)
    running = asyncio.create_task(teller.run())
    for reason in ("One", "Two", "Three"):
        teller.tell(RAW, "GpuPod", Transition(reason, "words", reason == "Three"))
    assert cluster.events == []
    cluster.gate.set()
    await until(lambda: len(cluster.events) == 2)
    api = "gpupod.dev/v1alpha1"
    assert cluster.events == [("a", api, "GpuPod", "One", False), ("a", api, "GpuPod", "Three", True)]
    assert lost(metrics) == 1
    running.cancel()


async def test_an_orderly_end_says_what_still_waits():
    cluster, metrics = Cluster(), Metrics()
    teller = Teller(cluster, metrics)
    running = asyncio.create_task(teller.run())
    for reason in ("One", "Two"):
        teller.tell(RAW, "GpuPod", Transition(reason, "words", False))
    await asyncio.sleep(0)  # the first is being sent
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    cluster.gate.set()
    await teller.finish()
    assert [event[3] for event in cluster.events] == ["One", "Two"]
    assert lost(metrics) == 0


async def test_with_too_many_waiting_the_oldest_are_given_up_and_counted(monkeypatch):
    monkeypatch.setattr(module, "WAITING", 2)
    cluster, metrics = Cluster(), Metrics()
    teller = Teller(cluster, metrics)
    for reason in ("One", "Two", "Three"):
        teller.tell(RAW, "GpuPod", Transition(reason, "words", False))
    cluster.gate.set()
    await teller.finish()
    assert [event[3] for event in cluster.events] == ["Two", "Three"]
    assert lost(metrics) == 1
