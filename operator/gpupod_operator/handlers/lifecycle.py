"""Start and end of the served world: everything is listed before anything is decided."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Any

import aiohttp
import kopf

from gpupod_operator.api.names import GPUPODS, SWEEPCELLS
from gpupod_operator.cluster.login import login
from gpupod_operator.cluster.pods_conf_writer import PodsConfWriter, WriteResult
from gpupod_operator.render.configmaps import config_maps
from gpupod_operator.render.ssh_config import SshPaths
from gpupod_operator.runtime.orphans import OrphanHunter
from gpupod_operator.runtime.relist import Relist
from gpupod_operator.runtime.runway import Runway
from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator")

KOPF_CONNECTIONS = 12
"""Two of them are the watches; the rest carry patches of finalizers."""


def register(registry: kopf.OperatorRegistry, world: World) -> None:
    """Declare login, startup and cleanup on this registry."""
    stop = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    @kopf.on.login(registry=registry, id="login")
    async def log_in(**kwargs: Any) -> kopf.AiohttpSession:
        return await session(**kwargs)

    @kopf.on.startup(registry=registry, id="seed")
    async def seed(**_: Any) -> None:
        await seed_store(world)
        paths = SshPaths(world.settings.ssh_identity_file, world.settings.ssh_known_hosts_file)

        def rendered(namespace: str) -> dict[str, dict[str, str]] | None:
            rows = world.rows_of(namespace)
            return config_maps(rows, paths) if rows is not None else None

        def written(namespace: str, result: WriteResult) -> None:
            world.conf_problems[namespace] = result.problem
            world.wake_namespace(namespace)

        writer = PodsConfWriter(world.cluster, rendered, on_result=written)
        world.mark_conf = writer.mark
        for namespace in {raw["metadata"]["namespace"] for raw in world.store.all(GPUPODS)}:
            writer.mark(namespace)
        shared = {
            "pods-conf": writer.run(stop),
            "events": world.teller.run(),
            "orphans": OrphanHunter(world).run(stop),
            "runway": Runway(world).run(stop),
            "relist": Relist(world).run(stop),
        }
        for name, work in shared.items():
            task = asyncio.create_task(work, name=name)
            task.add_done_callback(ended)
            tasks.append(task)

    @kopf.on.cleanup(registry=registry, id="end")
    async def end(**_: Any) -> None:
        stop.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await world.teller.finish()
        await world.close()


async def seed_store(world: World) -> None:
    """Every object of the served namespaces is in the store before anything is concluded from an absence."""
    for plural in (GPUPODS, SWEEPCELLS):
        world.store.seed(plural, await world.list_served(plural))
    world.store.seeded = True


def ended(task: asyncio.Task[None]) -> None:
    """A task that all objects share must not die unseen: the process ends, and Kubernetes starts it again."""
    if task.cancelled() or task.exception() is None:
        return
    log.critical("the task %s died, ending", task.get_name(), exc_info=task.exception())
    signal.raise_signal(signal.SIGTERM)


async def session(**kwargs: Any) -> kopf.AiohttpSession:
    """kopf's own connections, bounded: left to itself it opens one per object at once, 0.4 MB each.

    kopf closes the session when the login is replaced or it ends.
    """
    info = await asyncio.to_thread(login, **kwargs)
    connector = aiohttp.TCPConnector(limit=KOPF_CONNECTIONS, ssl=await asyncio.to_thread(info.as_ssl_context))
    made = aiohttp.ClientSession(
        connector=connector, headers=info.as_http_headers(), proxy=info.proxy_url, trust_env=info.trust_env
    )
    return kopf.AiohttpSession(server=info.server, default_namespace=info.default_namespace, aiohttp_session=made)
