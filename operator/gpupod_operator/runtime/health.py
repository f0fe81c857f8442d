"""/healthz, /readyz and /metrics: small, read-only, no secrets."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import generate_latest

from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.names import GPUPODS
from gpupod_operator.runtime.metrics import Metrics

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

STUCK = timedelta(minutes=10)
"""A pass (every call of it has a timeout) that runs longer than this is stuck: let the kubelet restart us."""


class Health:
    """The state that the probes report. `world` is set once this process leads."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self.ready = False
        self.standby = True
        self.world: World | None = None

    def stuck(self) -> str | None:
        """The object whose pass hangs, if there is one."""
        if self.world is None:
            return None
        now = self.world.clock.now()
        for slot in [*self.world.slots, *self.world.cell_slots]:
            if slot.pass_began is not None and now - slot.pass_began > STUCK:
                return "/".join(slot.key)
        return None


async def serve(health: Health, host: str, port: int, metrics_port: int) -> web.AppRunner:
    """Start the server(s); the runner is cleaned up by the caller. Port 0 takes a free one; -1 disables."""
    app = web.Application()

    async def healthz(_: web.Request) -> web.Response:
        stuck = health.stuck()
        return web.Response(text=f"pass of {stuck} hangs\n" if stuck else "ok\n", status=500 if stuck else 200)

    async def readyz(_: web.Request) -> web.Response:
        # a standby is ready too: it has nothing to do but to wait for the Lease
        return web.Response(text="standby\n" if health.standby else "leading\n", status=200 if health.ready else 503)

    async def metrics(_: web.Request) -> web.Response:
        if health.world is not None:
            collect(health.world)
        return web.Response(body=generate_latest(health.metrics.registry), content_type="text/plain")

    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    for number in {p for p in (port, metrics_port) if p >= 0}:
        await web.TCPSite(runner, host, number).start()
    return runner


def collect(world: World) -> None:
    """Fill the gauges that are derived from committed status, at the time of a scrape."""
    metrics, now = world.metrics, world.clock.now()
    metrics.phases.clear()
    metrics.unreachable_seconds.clear()
    metrics.unreachable_dollars.clear()
    metrics.stuck_teardown.clear()
    for raw in world.store.all(GPUPODS):
        status = GpuPodStatus.model_validate(raw.get("status") or {})
        namespace, name = raw["metadata"]["namespace"], raw["metadata"]["name"]
        metrics.phases.labels(str(status.phase or "Pending")).inc()
        cost = status.pod.cost_per_hour if status.pod is not None else None
        episode = status.episode
        if episode is not None and episode.first_seen is not None:
            seconds = max((now - episode.first_seen).total_seconds(), 0)
            metrics.unreachable_seconds.labels(namespace, name).set(seconds)
            metrics.unreachable_dollars.labels(namespace, name).set(float(cost or 0) * seconds / 3600)
        pod_id = status.attempt.pod_id if status.attempt is not None else None
        if raw["metadata"].get("deletionTimestamp") and pod_id is not None:
            metrics.stuck_teardown.labels(namespace, name, pod_id).set(float(cost or 0))
    ages = [(now - s.pass_began).total_seconds() for s in world.slots if s.pass_began is not None]
    metrics.queue_age.set(max(ages, default=0))
