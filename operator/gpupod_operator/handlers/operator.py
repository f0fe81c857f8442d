"""One operator process: login, CRD check, Lease, kopf. Losing the Lease ends the process before the next act."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import signal
import socket
from collections.abc import Callable
from typing import Any

import kopf

from gpupod_operator.cluster.client import ClusterClient
from gpupod_operator.cluster.events import EventPoster
from gpupod_operator.cluster.lease import Lease
from gpupod_operator.cluster.login import login
from gpupod_operator.cluster.transport import ApiTransport
from gpupod_operator.handlers import gpupod, lifecycle, sweepcell
from gpupod_operator.handlers.preflight import StartError, check_cluster, instance_of
from gpupod_operator.handlers.settings import kopf_settings
from gpupod_operator.hub.reader import HubReader
from gpupod_operator.hub.requests import hub_session
from gpupod_operator.ports import ApiForbidden, ApiNotFound, ApiUnavailable
from gpupod_operator.runpod.accounts import Accounts
from gpupod_operator.runtime.clock import SystemClock
from gpupod_operator.runtime.health import Health, serve
from gpupod_operator.runtime.metrics import Metrics
from gpupod_operator.runtime.settings import Settings
from gpupod_operator.runtime.turns import TurnTaking
from gpupod_operator.runtime.world import World
from gpupod_operator.shell.connection import ShellTimeouts
from gpupod_operator.shell.shell import AsyncsshShell

log = logging.getLogger("gpupod_operator")


CONNECT_SECONDS = 5.0
"""Three SYNs (at 0, 1 and 3 s) go out in this time; a host that answers none of them is a fact to act on."""


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or the loss of the Lease. Raises StartError before anything was acted on."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    metrics, clock = Metrics(), SystemClock()
    health = Health(metrics)
    try:
        login()
    except kopf.LoginError as error:
        raise StartError(f"no way into a Kubernetes API: {error}") from None
    runner = await serve(health, settings.health_host, settings.health_port, settings.metrics_port)
    try:
        # the Lease has a line of its own: its renewal must not stand behind the writes of a fleet
        async with ApiTransport() as lease_line, TurnTaking() as transport:
            await check_cluster(transport, settings)
            health.ready = True
            await lead(settings, transport, lease_line, clock, metrics, health, stop)
    except OSError as error:
        raise StartError(f"cannot serve: {error}") from None
    finally:
        await runner.cleanup()


async def lead(
    settings: Settings,
    transport: ApiTransport,
    lease_line: ApiTransport,
    clock: SystemClock,
    metrics: Metrics,
    health: Health,
    stop: asyncio.Event,
) -> None:
    """Wait for the Lease, serve, release it."""
    identity = f"{socket.gethostname()}-{secrets.token_hex(4)}"
    lease = Lease(lease_line, namespace=settings.namespace, name=settings.lease_name, identity=identity, clock=clock)
    ending = asyncio.create_task(stop.wait(), name="stop")
    keeping: asyncio.Task[str] | None = None
    try:
        if settings.leader_elect:
            log.info("waiting for the Lease %s/%s as %s", settings.namespace, settings.lease_name, identity)
            acquiring = asyncio.create_task(lease.acquire(), name="lease-acquire")
            await asyncio.wait({acquiring, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not acquiring.done():
                acquiring.cancel()
                return
            _acquired(acquiring, settings)
            keeping = asyncio.create_task(lease.keep(), name="lease-keep")
        health.standby = False
        may_act = lease.may_act if settings.leader_elect else (lambda: True)
        await _serve(settings, transport, clock, metrics, health, identity, may_act, ending, keeping)
    finally:
        ending.cancel()
        if keeping is not None:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
        try:
            await lease.release()
        except (ApiUnavailable, ApiForbidden, ApiNotFound) as error:
            log.warning("the Lease could not be given back and runs out by itself: %s", error)


def _acquired(acquiring: asyncio.Task[None], settings: Settings) -> None:
    try:
        acquiring.result()
    except (ApiForbidden, ApiNotFound) as error:
        raise StartError(
            f"the Lease {settings.namespace}/{settings.lease_name} cannot be taken: {error}. Does the namespace exist, "
            f"and does the ServiceAccount have the Role of manifests/base/rbac.yaml?"
        ) from None


async def _serve(
    settings: Settings,
    transport: ApiTransport,
    clock: SystemClock,
    metrics: Metrics,
    health: Health,
    identity: str,
    may_act: Callable[[], bool],
    ending: asyncio.Task[bool],
    keeping: asyncio.Task[str] | None,
) -> None:
    events = EventPoster(clock, controller="gpupod-operator", instance=identity)
    cluster = ClusterClient(transport, events, permit=may_act)
    instance = await instance_of(settings, cluster)
    hub = hub_session()
    accounts = Accounts(
        clock,
        base_url=settings.runpod_api,
        observe_every=settings.observe_every,
        on_call=metrics.observe_call,
        permit=may_act,
    )
    shell = AsyncsshShell(clock, timeouts=ShellTimeouts(connect=CONNECT_SECONDS))
    world = World(
        settings=settings,
        clock=clock,
        cluster=cluster,
        accounts=accounts,
        hub=HubReader(hub, clock, endpoint=settings.hub_endpoint),
        shell=shell,
        metrics=metrics,
        instance=instance,
        may_act=may_act,
        agent_tree=shell.tree_hash,
        entropy=lambda: secrets.token_hex(16),
    )
    health.world = world
    registry = kopf.OperatorRegistry()
    for part in (lifecycle, gpupod, sweepcell):
        part.register(registry, world)
    stop_flag = asyncio.Event()
    log.info("leading as %s, instance %s", identity, instance)
    namespaces = list(settings.watch_namespaces)
    serving = asyncio.create_task(
        kopf.operator(
            registry=registry,
            settings=kopf_settings(),
            standalone=True,
            clusterwide=not namespaces,
            namespaces=namespaces,
            stop_flag=stop_flag,
        ),
        name="kopf",
    )
    waiting: set[asyncio.Task[Any]] = {t for t in (serving, ending, keeping) if t is not None}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if keeping is not None and keeping.done():
            log.error("the Lease is lost, ending: %s", keeping.result())
    finally:
        stop_flag.set()
        try:
            await asyncio.wait_for(asyncio.shield(serving), timeout=15)
        except TimeoutError:
            serving.cancel()
        finally:
            await hub.close()
            await accounts.close()
    if serving.done() and not serving.cancelled() and serving.exception() is not None:
        raise StartError(f"the watch ended: {serving.exception()}")
