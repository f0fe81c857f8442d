"""The operator from start to a clean end: as its own command, and its handlers under kopf's own test runner."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator

import aiohttp
import kopf
import pytest
from kopf.testing import KopfRunner

from gpupod_operator.cluster.client import ClusterClient
from gpupod_operator.cluster.events import EventPoster
from gpupod_operator.handlers import gpupod, lifecycle, sweepcell
from gpupod_operator.handlers.settings import kopf_settings
from gpupod_operator.hub.reader import HubReader
from gpupod_operator.hub.requests import hub_session
from gpupod_operator.runpod.accounts import Accounts
from gpupod_operator.runtime.clock import SystemClock
from gpupod_operator.runtime.metrics import Metrics
from gpupod_operator.runtime.settings import Settings
from gpupod_operator.runtime.turns import TurnTaking
from gpupod_operator.runtime.world import World
from gpupod_operator.shell.shell import AsyncsshShell
from gpupod_rehearsal.demo.stage import API, NAMESPACE, SYSTEM
from worldkit.fixtures import Theatre, is_true, pod_id


async def test_the_command_rents_a_pod_and_ends_on_sigterm_with_code_0(theatre: Theatre) -> None:
    operator = theatre.stage.operator
    assert operator is not None
    await theatre.apply()
    pod = await theatre.until(is_true("Ready"))
    await operator.end()
    assert operator.returncode == 0
    lease = await theatre.admin.get("Lease", "gpupod-operator", namespace=SYSTEM)
    assert lease["spec"].get("holderIdentity", "") == "", "given back, so that the next one need not wait"
    lines = [json.loads(line) for line in operator.log.read_text(encoding="utf-8").splitlines()]
    assert lines, "it says what it did"
    assert [line for line in lines if line["level"] in ("error", "critical") or "exception" in line] == []
    assert [p["podId"] for p in await theatre.alive()] == [pod_id(pod)], "its end is not the end of the pods"


@pytest.fixture
def own_logging() -> Iterator[None]:
    """`kopf run` sets up the logging of the whole process, with a stream that ends with the command."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in ("asyncio", "kopf", "kopf.objects")}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, was in levels.items():
        logging.getLogger(name).setLevel(was)


def handlers_of(settings: Settings, instance: str, hub: aiohttp.ClientSession) -> kopf.OperatorRegistry:
    """What `gpupod-operator run` registers, of the same parts; the connections are opened in the loop that needs them.

    `hub` belongs to the caller's loop: nothing here uploads, so nothing is asked of it.
    """
    clock, transport = SystemClock(), TurnTaking()
    shell = AsyncsshShell(clock)
    events = EventPoster(clock, controller="gpupod-operator", instance="smoke")
    world = World(
        settings=settings,
        clock=clock,
        cluster=ClusterClient(transport, events, permit=lambda: True),
        accounts=Accounts(clock, base_url=settings.runpod_api, observe_every=settings.observe_every),
        hub=HubReader(hub, clock, endpoint=settings.hub_endpoint),
        shell=shell,
        metrics=Metrics(),
        instance=instance,
        may_act=lambda: True,
        agent_tree=shell.tree_hash,
        entropy=lambda: secrets.token_hex(16),
    )
    registry = kopf.OperatorRegistry()
    for part in (lifecycle, gpupod, sweepcell):
        part.register(registry, world)

    @kopf.on.cleanup(registry=registry, id="close")
    async def close_line(**_: object) -> None:
        await transport.close()

    return registry


@pytest.mark.usefixtures("own_logging")
async def test_the_handlers_serve_under_kopfs_own_runner(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = theatre.stage
    assert stage.operator is not None
    await stage.operator.end()
    folder = stage.workdir / "runner"
    env = stage.plane.access.in_cluster_env(folder, namespace=SYSTEM, service_account="gpupod-operator")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    settings = Settings(
        runpod_api=stage.runpod_url,
        hub_endpoint=stage.hub_url,
        runpod_key_file=stage.workdir / "runpod-key",
        namespace=SYSTEM,
        observe_every=0.5,
        visit_every=0.5,
        create_settle=3,
    )
    cluster = await theatre.admin.get("Namespace", "kube-system")
    async with hub_session() as hub:
        registry = handlers_of(settings, cluster["metadata"]["uid"], hub)
        runner = KopfRunner(
            ["run", "--standalone", "--all-namespaces"], registry=registry, settings=kopf_settings(), timeout=30
        )
        with runner:
            await theatre.apply()
            pod = await theatre.until(is_true("Ready"))
            await theatre.stage.kube.delete(API, "GpuPod", "one", NAMESPACE)
            await theatre.admin.wait_gone("GpuPod", "one", namespace=NAMESPACE, timeout=60)
    assert runner.exception is None
    assert runner.exit_code == 0
    assert "Traceback" not in runner.output
    assert pod_id(pod) is not None
    assert await theatre.alive() == []
    assert await theatre.creates() == 1
