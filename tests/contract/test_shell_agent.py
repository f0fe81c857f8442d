"""The agent is put on a pod over SSH, runs without the session, and uploads to the simulated Hub."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpupod_operator.core.artifacts import AgentReading
from gpupod_operator.core.shell import SshClass
from gpupod_operator.ports import ShellError
from gpupod_operator.shell import AsyncsshShell
from gpupod_operator.shell.tree import AgentTree
from gpupod_rehearsal.hub.accounts import HubToken
from gpupod_rehearsal.hub.simulator import HubSimulator
from shellkit.server import FAST, PodServer, StoppedClock

pytest_plugins = ["shellkit.fixtures"]

REPO = "ada/sweeps"
TOKEN = "hf_testtokenOfTheCell"


@pytest.fixture
async def hub() -> AsyncIterator[HubSimulator]:
    async with HubSimulator(tokens=[HubToken("ada", secret=TOKEN)]) as running:
        running.create_repo(REPO)
        yield running


def _settings(hub: HubSimulator, **changes: Any) -> dict[str, Any]:
    return {"hubEndpoint": hub.url, "tokens": {"uid-c1": TOKEN}, "attempt": "a1", "podId": "pod1", **changes}


async def _install(server: PodServer, settings: dict[str, Any], tree: AgentTree | None = None) -> str:
    shell = AsyncsshShell(StoppedClock(), timeouts=FAST, layout=server.layout, tree=tree)
    return await shell.install_agent(server.target(), server.private, settings=settings)


async def _agent(server: PodServer) -> AgentReading:
    reading = await server.shell().read(server.target(), server.private)
    assert reading.ssh is SshClass.OK, reading.message
    assert reading.agent is not None
    return reading.agent


async def _when(server: PodServer, holds: Callable[[AgentReading], bool]) -> AgentReading:
    async with asyncio.timeout(30):
        while not holds(agent := await _agent(server)):
            await asyncio.sleep(0.1)
    return agent


def _pid(server: PodServer) -> int:
    return int(json.loads((server.root / "agent" / "state.json").read_text())["agent"]["pid"])


async def _order(server: PodServer) -> None:
    out = Path(server.layout.work) / "out" / "c1"
    (out / "evals").mkdir(parents=True)
    (out / "evals" / "a.json").write_text("{}")
    (out / "DONE").write_text("done")
    cell = {
        "name": "c1",
        "uid": "uid-c1",
        "namespace": "team",
        "sweep": "s",
        "state": "Pending",
        "doneFile": str(out / "DONE"),
        "artifacts": [{"name": "evals", "path": str(out / "evals"), "files": ["a.json"]}],
        "destination": {"repo": REPO, "type": "dataset", "revision": "main", "path": "s/c1"},
        "tokenFrom": "Secret",
        "progressDeadlineSeconds": 60,
        "manifest": None,
        "commit": None,
    }
    orders = {"format": 1, "podId": "pod1", "attempt": "a1", "cells": [cell]}
    await server.shell().write_cells(server.target(), server.private, json.dumps(orders).encode())


async def test_an_installed_agent_uploads_without_any_session(server: PodServer, hub: HubSimulator) -> None:
    await _order(server)
    tree_hash = await _install(server, _settings(hub))
    agent = await _when(server, lambda seen: "uid-c1" in seen.cells and seen.cells["uid-c1"].state == "Uploaded")
    assert (agent.running, agent.tree_hash, agent.attempt, agent.pod_id) == (True, tree_hash, "a1", "pod1")
    cell = agent.cells["uid-c1"]
    (commit,) = [entry for entry in hub.repo(REPO).commits() if entry.title == "cell c1"]
    assert cell.commit_oid == commit.oid
    assert cell.manifest_digest is not None
    assert cell.manifest_digest in commit.description
    assert (cell.manifest_files, cell.manifest_bytes) == (1, 2)
    assert cell.commit_at is not None
    assert cell.manifest_taken_at is not None


async def test_a_token_lies_in_a_private_file_in_memory_and_nowhere_else(server: PodServer, hub: HubSimulator) -> None:
    await _order(server)
    await _install(server, _settings(hub))
    await _when(server, lambda seen: "uid-c1" in seen.cells and seen.cells["uid-c1"].state == "Uploaded")
    token = Path(server.layout.secrets) / "token-uid-c1"
    assert token.read_text() == TOKEN
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700
    holding = [
        path
        for path in Path(server.layout.work).rglob("*")
        if path.is_file() and not path.is_symlink() and TOKEN.encode() in path.read_bytes()
    ]
    assert holding == []
    for part in ("cmdline", "environ"):
        assert TOKEN.encode() not in Path(f"/proc/{_pid(server)}/{part}").read_bytes()


async def test_a_second_install_leaves_the_running_agent_alone(server: PodServer, hub: HubSimulator) -> None:
    await _order(server)
    await _install(server, _settings(hub))
    await _when(server, lambda seen: seen.running)
    pid, token = _pid(server), Path(server.layout.secrets) / "token-uid-c1"
    before = token.stat().st_mtime_ns
    log = server.root / "agent" / "agent.log"
    await _install(server, _settings(hub))
    async with asyncio.timeout(30):
        while "runs already" not in log.read_text():
            await asyncio.sleep(0.05)
    assert _pid(server) == pid
    assert token.stat().st_mtime_ns == before
    assert (await _agent(server)).running is True


async def test_another_tree_replaces_the_running_one(server: PodServer, hub: HubSimulator) -> None:
    await _order(server)
    first = await _install(server, _settings(hub))
    await _when(server, lambda seen: seen.running)
    pid = _pid(server)
    newer = _changed_tree()
    assert await _install(server, _settings(hub), newer) == newer.hash != first
    agent = await _when(server, lambda seen: seen.running and seen.tree_hash == newer.hash)
    assert _pid(server) != pid
    assert agent.cells["uid-c1"].state in ("Produced", "Uploading", "Uploaded")
    async with asyncio.timeout(10):
        while [path.name for path in (server.root / "agent" / "trees").iterdir()] != [newer.hash]:
            await asyncio.sleep(0.05)


async def test_a_killed_agent_is_started_again_by_an_install(server: PodServer, hub: HubSimulator) -> None:
    await _order(server)
    await _install(server, _settings(hub))
    await _when(server, lambda seen: seen.running)
    pid = _pid(server)
    os.kill(pid, signal.SIGKILL)
    await _when(server, lambda seen: not seen.running)
    await _install(server, _settings(hub))
    await _when(server, lambda seen: seen.running)
    assert _pid(server) != pid


async def test_a_rotated_token_unblocks_the_cell_without_a_restart(server: PodServer, hub: HubSimulator) -> None:
    await _order(server)
    await _install(server, _settings(hub, tokens={"uid-c1": "hf_expiredtoken"}))
    blocked = await _when(server, lambda seen: "uid-c1" in seen.cells and seen.cells["uid-c1"].state == "Blocked")
    assert (blocked.cells["uid-c1"].error_class, blocked.cells["uid-c1"].error_exit) == ("Unauthorized", 12)
    pid = _pid(server)
    await _install(server, _settings(hub))
    agent = await _when(server, lambda seen: seen.cells["uid-c1"].state == "Uploaded")
    assert agent.cells["uid-c1"].error_class is None
    assert _pid(server) == pid


@pytest.mark.parametrize("token", ["two words", "two\nlines", ""])
async def test_a_token_that_is_no_token_is_refused_without_being_shown(
    server: PodServer, hub: HubSimulator, token: str
) -> None:
    with pytest.raises(ValueError, match="uid-c1") as refused:
        await _install(server, _settings(hub, tokens={"uid-c1": token}))
    assert not token or token not in str(refused.value)
    assert not server.root.exists()


async def test_a_tree_that_arrives_broken_is_never_put_in_place(server: PodServer, hub: HubSimulator) -> None:
    tree = AgentTree.load()
    with pytest.raises(ShellError, match="the tree"):
        await _install(server, _settings(hub), replace(tree, tar=tree.tar[:10_000]))
    assert not (server.root / "agent" / "VERSION").exists()
    assert not (server.root / "agent" / "trees" / tree.hash).exists()


def _changed_tree() -> AgentTree:
    import io
    import tarfile

    tree = AgentTree.load()
    version = "f" * 32
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(tree.tar)) as old, tarfile.open(fileobj=out, mode="w") as new:
        for entry in old:
            source = old.extractfile(entry)
            assert source is not None
            data = f"{version}\n".encode() if entry.name == "VERSION" else source.read()
            entry.size = len(data)
            new.addfile(entry, io.BytesIO(data))
    return AgentTree(version, out.getvalue())
