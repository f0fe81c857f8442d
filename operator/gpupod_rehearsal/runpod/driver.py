"""Carries the cloud's orders to the hosts and brings their answers back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from gpupod_rehearsal.hosts.protocol import Endpoint, HostError, NamespacesUnavailable, PodHost, PodLaunch, VolumeMount
from gpupod_rehearsal.runpod.cloud import Cloud
from gpupod_rehearsal.runpod.orders import DestroyContainer, Order, SetReachable, StartContainer, StopContainer
from gpupod_rehearsal.runpod.pod import PortMapping, SimPod

_log = logging.getLogger(__name__)


class HostDriver:
    """Executes orders, one at a time per pod. With an instant host everything is done when `settle` returns."""

    def __init__(self, cloud: Cloud, hosts: PodHost, on_change: Callable[[], None]) -> None:
        self._cloud = cloud
        self._hosts = hosts
        self._on_change = on_change
        self._chains: dict[str, asyncio.Task[None]] = {}

    async def settle(self) -> None:
        """Carry out what the model has ordered; with slow hosts, start carrying it out."""
        while orders := self._cloud.take_orders():
            for order in orders:
                if self._hosts.instant:
                    await self._carry_out(order)
                else:
                    self._enqueue(order)

    async def drain(self) -> None:
        """Wait until no order is under way."""
        while self._chains or self._cloud.orders:
            await self.settle()
            if self._chains:
                await asyncio.wait(list(self._chains.values()))

    async def close(self) -> None:
        """Give up whatever is under way."""
        tasks = list(self._chains.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._chains.clear()

    def _enqueue(self, order: Order) -> None:
        before = self._chains.get(order.pod_id)
        task = asyncio.create_task(self._after(before, order))
        self._chains[order.pod_id] = task
        task.add_done_callback(lambda done: self._forget(order.pod_id, done))

    def _forget(self, pod_id: str, task: asyncio.Task[None]) -> None:
        if self._chains.get(pod_id) is task:
            del self._chains[pod_id]

    async def _after(self, before: asyncio.Task[None] | None, order: Order) -> None:
        if before is not None:
            await asyncio.wait([before])
        await self._carry_out(order)
        self._on_change()

    async def _carry_out(self, order: Order) -> None:
        pod = self._cloud.pods[order.pod_id]
        try:
            match order:
                case StartContainer():
                    await self._start(pod, order)
                case StopContainer():
                    await self._hosts.stop(pod.id)
                case DestroyContainer():
                    await self._hosts.terminate(pod.id)
                case SetReachable():
                    await self._hosts.set_reachable(pod.id, order.reachable, order.mode)
        except (HostError, NamespacesUnavailable) as failure:
            _log.warning("pod %s: %s", pod.id, failure)
            self._cloud.container_failed(pod.id, pod.starts, str(failure))

    async def _start(self, pod: SimPod, order: StartContainer) -> None:
        if pod.starts != order.generation or not pod.alive:
            return
        endpoint = await self._hosts.start(launch_of(pod))
        self._cloud.container_started(pod.id, order.generation, _mappings(self._cloud, pod, endpoint))


def launch_of(pod: SimPod) -> PodLaunch:
    """What a host is told about a pod, with the variables RunPod puts into every container."""
    env = {
        **pod.container.env,
        "RUNPOD_POD_ID": pod.id,
        "RUNPOD_API_KEY": pod.key,
        "RUNPOD_POD_HOSTNAME": pod.id,
        "RUNPOD_GPU_COUNT": str(pod.gpus_shown),
        "RUNPOD_CPU_COUNT": str(pod.vcpus),
        "RUNPOD_DC_ID": pod.data_center or "",
    }
    mount = None
    if pod.network is not None:
        env["RUNPOD_VOLUME_ID"] = pod.network["volumeId"]
        mount = VolumeMount(pod.network["path"], pod.network["volumeId"])
    elif pod.persistent is not None:
        mount = VolumeMount(str(pod.persistent["path"]))
    keys = tuple(line for line in env.get("PUBLIC_KEY", "").splitlines() if line.strip())
    return PodLaunch(pod.id, env, mount, keys)


def _mappings(cloud: Cloud, pod: SimPod, endpoint: Endpoint) -> tuple[PortMapping, ...]:
    """Port 22 is real; other tcp ports get an invented public port, http ports the private address of the proxy."""
    found = [PortMapping(port, None, "http", "100.65.0.101") for port in pod.http_ports]
    for port in pod.tcp_ports:
        public = endpoint.port if port == 22 else cloud.random.randint(40_000, 60_000)
        found.append(PortMapping(port, public, "tcp", endpoint.ip))
    return tuple(found)
