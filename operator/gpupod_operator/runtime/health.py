"""/healthz, /readyz and /metrics: small, read-only, no secrets."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import generate_latest

from gpupod_operator.api.names import GPUPODS
from gpupod_operator.runtime.buckets import Bucket, Cloud, Held, per_bucket, sort_out
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
    metrics.unlaunched.clear()
    known: list[Held] = []
    phases: Counter[str] = Counter()
    for (namespace, name), figure in world.figures.of(world.store.all(GPUPODS)):
        phases[figure.phase] += 1
        if figure.unreachable_since is not None:
            seconds = max((now - figure.unreachable_since).total_seconds(), 0)
            metrics.unreachable_seconds.labels(namespace, name).set(seconds)
            metrics.unreachable_dollars.labels(namespace, name).set(figure.cost * seconds / 3600)
        if figure.unlaunched:
            metrics.unlaunched.labels(namespace, name).set(figure.cost)
        if figure.held is not None:
            known.append(figure.held)
        if figure.blocked_pod is not None:
            metrics.stuck_teardown.labels(namespace, name, figure.blocked_pod).set(figure.cost)
    for phase, count in phases.items():
        metrics.phases.labels(phase).set(count)
    _buckets(world, known)
    ages = [(now - s.pass_began).total_seconds() for s in world.slots if s.pass_began is not None]
    metrics.queue_age.set(max(ages, default=0))


def _buckets(world: World, known: list[Held]) -> None:
    """All pods of every account in use, each in one bucket, on the newest complete lists."""
    metrics = world.metrics
    metrics.bucket_pods.clear()
    metrics.bucket_dollars.clear()
    clouds = [
        Cloud(
            account.identity.id,
            tuple(account.observer.inventory.pods.values()),
            world.instance,
            world.fleet.released(account.identity.id),
        )
        for account in world.opened()
    ]
    entries = sort_out(known, clouds, world.clock.now())
    for account in sorted({entry.account for entry in entries} | {cloud.account for cloud in clouds}):
        for bucket, pods, dollars, _ in per_bucket([e for e in entries if e.account == account]):
            metrics.bucket_pods.labels(account, Bucket(bucket)).set(pods)
            metrics.bucket_dollars.labels(account, Bucket(bucket)).set(float(dollars))
