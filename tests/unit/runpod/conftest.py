"""A server that answers with literal bytes, one scripted answer per request, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gpupod_operator.runpod import Governor, KeySource, RunPodClient, runpod_session

SECRET = "rpa_UNITTESTSECRETVALUE"
JSON, PROBLEM, HTML = "application/json", "application/problem+json", "text/html"


@dataclass
class Script:
    """One answer. `cut` resets the connection instead; `held` waits for the test's word first."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    held: asyncio.Event | None = None


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Desk:
    """What the server will say, and what it was asked."""

    def __init__(self) -> None:
        self.script: list[Script] = []
        self.asked: list[Asked] = []
        self.url = ""

    def say(self, document: object, status: int = 200, **more: Any) -> Desk:
        content_type = JSON if status < 400 else PROBLEM
        self.script.append(Script(status, json.dumps(document).encode(), content_type, **more))
        return self

    def refuse(self, status: int, detail: str, *errors: str, headers: dict[str, str] | None = None) -> Desk:
        document = {"title": "x", "status": status, "detail": detail, **({"errors": list(errors)} if errors else {})}
        return self.say(document, status, headers=headers or {})

    def literal(self, text: str, **more: Any) -> Desk:
        """These bytes, one per character."""
        self.script.append(Script(body=text.encode("latin-1"), **more))
        return self

    async def answer(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        self.asked.append(
            Asked(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                json.loads(text) if text else None,
            )
        )
        if not self.script:
            raise AssertionError(f"nothing is scripted for {request.method} {request.path}")
        script = self.script.pop(0)
        if script.held is not None:
            await script.held.wait()
        if script.cut:
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError
        headers = {"x-request-id": f"req-{len(self.asked)}", **script.headers}
        if script.status == 204:
            return web.Response(status=204, headers=headers)
        return web.Response(
            status=script.status, body=script.body, headers={**headers, "Content-Type": script.content_type}
        )


class SteppedClock:
    """`Clock` that a test moves."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def step(self, seconds: float) -> datetime:
        self.at += timedelta(seconds=seconds)
        return self.at


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", desk.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    desk.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield desk
    await runner.cleanup()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with runpod_session() as session:
        yield session


@pytest.fixture
def calls() -> list[tuple[str, str]]:
    """Name and outcome of each request, as metrics are told."""
    return []


@pytest.fixture
def client_of(desk: Desk, session: aiohttp.ClientSession, calls: list[tuple[str, str]]) -> Callable[..., RunPodClient]:
    def make(**more: Any) -> RunPodClient:
        return RunPodClient(
            session,
            KeySource.from_bytes(SECRET.encode()),
            more.pop("governor", None) or Governor(),
            base_url=more.pop("base_url", desk.url),
            on_call=lambda name, outcome, _: calls.append((name, outcome)),
            **more,
        )

    return make


@pytest.fixture
def client(client_of: Callable[..., RunPodClient]) -> RunPodClient:
    return client_of()


def wire_pod(pod_id: str = "p1", **more: object) -> dict[str, object]:
    """The vendor's Pod object of a healthy pod."""
    return {
        "id": pod_id,
        "name": f"sweep-{pod_id}",
        "status": "RUNNING",
        "actions": ["stop", "restart", "terminate"],
        "image": "runpod/pytorch:2.8",
        "args": "",
        "disk": 50,
        "mounts": {"persistent": {"size": 20, "path": "/workspace"}},
        "ports": ["22/tcp", "8888/http"],
        "env": {"GPUPOD_OWNER": "inst/ns/sweep/uid-1", "GPUPOD_NONCE": "n1", "HF_TOKEN": "hf_donotshow"},
        "registry": None,
        "template": None,
        "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 2, "vcpuCount": 32, "memory": 250},
        "cloud": "SECURE",
        "dataCenterId": "US-KS-2",
        "cudaVersion": "12.8",
        "ssh": {
            "proxy": {"host": "ssh.runpod.io", "port": 22, "username": f"{pod_id}-64411eb2", "command": "ssh x"},
            "direct": None,
        },
        "cost": 5.9801,
        "locked": False,
        "runtime": {
            "uptime": 5,
            "gpus": [{"util": 0, "memoryUtil": 0.5}, {"util": 1}],
            "ports": [
                {"private": 22, "public": 30022, "type": "tcp", "ip": "1.2.3.4"},
                {"private": 8888, "public": None, "type": "http", "ip": "100.65.0.1"},
            ],
        },
        "globalNetworking": {"enabled": False},
        "createdAt": "2026-11-30T11:00:00Z",
        "startedAt": "2026-11-30T12:01:02.345+01:00",
        **more,
    }


@pytest.fixture
def make_pod() -> Callable[..., dict[str, object]]:
    """The vendor's Pod object, with the given fields changed."""
    return wire_pod


@pytest.fixture
def wire() -> dict[str, Any]:
    """The vendor's Pod object as the client parses it: with exact decimals."""
    parsed: dict[str, Any] = json.loads(json.dumps(wire_pod()), parse_float=Decimal)
    return parsed


@pytest.fixture
def secret() -> str:
    """The key that the client uses."""
    return SECRET
