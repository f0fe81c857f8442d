"""Hosts without machines: endpoints are invented, for tests on a virtual clock."""

from __future__ import annotations

import itertools

from gpupod_rehearsal.hosts.protocol import Endpoint, PodLaunch

_FIRST_PORT = 20_001


class NullHost:
    """Invents a loopback endpoint per start, and remembers what it was told."""

    instant = True

    def __init__(self) -> None:
        self._ports = itertools.count(_FIRST_PORT)
        self._addresses: dict[str, str] = {}
        self.running: dict[str, Endpoint] = {}
        self.launches: dict[str, PodLaunch] = {}
        self.unreachable: set[str] = set()

    async def start(self, pod: PodLaunch) -> Endpoint:
        number = len(self._addresses) + 1
        address = self._addresses.setdefault(pod.pod_id, f"127.66.{number // 250}.{number % 250 + 1}")
        endpoint = Endpoint(address, next(self._ports))
        self.running[pod.pod_id] = endpoint
        self.launches[pod.pod_id] = pod
        self.unreachable.discard(pod.pod_id)
        return endpoint

    async def set_reachable(self, pod_id: str, reachable: bool, mode: str = "blackhole") -> None:  # noqa: ARG002
        if reachable:
            self.unreachable.discard(pod_id)
        else:
            self.unreachable.add(pod_id)

    async def stop(self, pod_id: str) -> None:
        self.running.pop(pod_id, None)

    async def restart(self, pod: PodLaunch) -> Endpoint:
        await self.stop(pod.pod_id)
        return await self.start(pod)

    async def terminate(self, pod_id: str) -> None:
        await self.stop(pod_id)

    async def close(self) -> None:
        self.running.clear()
