"""A simulated RunPod on a virtual clock, and a client that is nobody's product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from gpupod_rehearsal.runpod import Blueprint, RunPodSimulator, VirtualClock

H100 = "NVIDIA H100 80GB HBM3"
OWNER = "instance/default/trainer/uid-1"


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: dict[str, str]
    text: str


class Api:
    """Speaks to the simulator as some client would, with one key."""

    def __init__(self, sim: RunPodSimulator, session: aiohttp.ClientSession, alias: str = "main") -> None:
        self.sim = sim
        self.session = session
        self.headers = {"Authorization": f"Bearer {sim.key(alias)}", "User-Agent": "test/1"}

    def of(self, alias: str) -> Api:
        return Api(self.sim, self.session, alias)

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        async with self.session.request(
            method, self.sim.url + path, json=body, headers={**self.headers, **headers}
        ) as response:
            text = await response.text()
            parsed = await response.json(content_type=None) if "json" in response.content_type and text else None
            return Answer(response.status, parsed, {k.lower(): v for k, v in response.headers.items()}, text)

    async def create(self, **changes: Any) -> dict[str, Any]:
        answer = await self.call("POST", "/v2/pods", create_body(**changes))
        assert answer.status == 201, answer.text
        pod: dict[str, Any] = answer.body
        return pod

    async def running(self, **changes: Any) -> str:
        """A pod that is RUNNING with its ports published; returns its id."""
        pod = await self.create(**changes)
        await self.sim.advance(60)
        assert (await self.pod(pod["id"]))["ssh"]["direct"] is not None
        return str(pod["id"])

    async def pod(self, pod_id: str) -> dict[str, Any]:
        answer = await self.call("GET", f"/v2/pods/{pod_id}")
        assert answer.status == 200, answer.text
        pod: dict[str, Any] = answer.body
        return pod

    async def act(self, pod_id: str, action: str) -> Answer:
        return await self.call("POST", f"/v2/pods/{pod_id}/action", {"action": action})

    async def listed(self, query: str = "") -> list[str]:
        answer = await self.call("GET", f"/v2/pods{query}")
        assert answer.status == 200, answer.text
        return [pod["id"] for pod in answer.body["pods"]]

    async def ledger(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.call("GET", "/_sim/ledger")).body
        return found


def create_body(**changes: Any) -> dict[str, Any]:
    body = {
        "name": "trainer-n1",
        "image": "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404",
        "gpu": {"id": H100, "count": 1},
        "ports": ["22/tcp"],
        "disk": 20,
        "env": {"GPUPOD_OWNER": OWNER, "GPUPOD_NONCE": "n1"},
        **changes,
    }
    return {name: value for name, value in body.items() if value is not None}


@pytest.fixture
def body():
    return create_body


@pytest.fixture
def blueprint() -> Blueprint:
    """Overridden by tests that want a world of their own."""
    return Blueprint()


@pytest.fixture
async def sim(blueprint: Blueprint):
    async with RunPodSimulator(clock=VirtualClock(), blueprint=blueprint) as simulator:
        yield simulator


@pytest.fixture
async def api(sim: RunPodSimulator):
    async with aiohttp.ClientSession() as session:
        yield Api(sim, session)
