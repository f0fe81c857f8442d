"""A simulated Hub per test, the unmodified client as a subprocess, and the operator's reader."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gpupod_operator.core.artifacts import HubDestination
from gpupod_operator.hub import HubReader, hub_session
from gpupod_rehearsal.hub import HubSimulator, HubToken, SteppedClock

ADA, ADA_READS, BOB = "hf_ada_secret_token", "hf_ada_reading_token", "hf_bob_secret_token"
PROLOGUE = """
import json, os, sys
from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete, HfApi
api = HfApi()
def add(path, data): return CommitOperationAdd(path, data)
def commit(ops, repo="ada/sweeps", **kw):
    kw.setdefault("commit_message", "cell")
    return api.create_commit(repo, ops, repo_type="dataset", **kw)
def attempt(work):
    try:
        work()
    except Exception as error:
        response = getattr(error, "response", None)
        return [type(error).__name__, getattr(response, "status_code", None), str(error)]
    return ["landed", None, ""]
def out(value): print("RESULT " + json.dumps(value))
"""

Client = Callable[..., Awaitable[Any]]


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
async def hub(clock: SteppedClock) -> AsyncIterator[HubSimulator]:
    tokens = [
        HubToken("ada", "write", ADA),
        HubToken("ada", "read", ADA_READS),
        HubToken("bob", "write", BOB),
    ]
    async with HubSimulator(tokens=tokens, orgs={"lab": {"ada": "write", "bob": "read"}}, clock=clock) as simulator:
        simulator.create_repo("ada/sweeps")
        yield simulator


@pytest.fixture
def client(hub: HubSimulator, tmp_path: Path) -> Client:
    """Run code with the unmodified client in a process of its own; what it passes to `out` comes back."""

    async def run(code: str, *, token: str | None = ADA, xet: bool = False) -> Any:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        environment |= {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(tmp_path / "hf-home"),
            "HF_HUB_DISABLE_XET": "0" if xet else "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        if token:
            environment["HF_TOKEN"] = token
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            PROLOGUE + code,
            env=environment,
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await process.communicate()
        results = [line for line in stdout.decode().splitlines() if line.startswith("RESULT ")]
        assert results, f"the client ended with {process.returncode}: {stderr.decode()[-3000:]}"
        return json.loads(results[-1].removeprefix("RESULT "))

    return run


@pytest.fixture
async def reader(hub: HubSimulator, clock: SteppedClock) -> AsyncIterator[HubReader]:
    async with hub_session() as session:
        yield HubReader(session, clock, endpoint=hub.url)


@pytest.fixture
def cell() -> HubDestination:
    return HubDestination("ada/sweeps", "dataset", "main", "cells/c1")
