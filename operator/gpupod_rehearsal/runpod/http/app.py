"""The routes of the simulated vendor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from gpupod_rehearsal.runpod.contract import Profile
from gpupod_rehearsal.runpod.http import accounts, billing, catalog, graphql, logs, pods, storage
from gpupod_rehearsal.runpod.http.context import SIMULATOR
from gpupod_rehearsal.runpod.http.gateway import gateway
from gpupod_rehearsal.runpod.http.inspection import routes as inspection_routes

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.simulator import RunPodSimulator

#: Bodies above the vendor's own limit must reach the handler that answers 413.
_CLIENT_MAX = 4 * 1024 * 1024


def build_app(simulator: RunPodSimulator) -> web.Application:
    """The application for one simulator."""
    app = web.Application(middlewares=[gateway], client_max_size=_CLIENT_MAX)
    app[SIMULATOR] = simulator
    for module in (pods, logs, storage, catalog, billing, accounts):
        app.add_routes(module.routes())
    if simulator.profile is Profile.NOVEMBER:
        app.add_routes(accounts.november_routes())
    app.add_routes(graphql.routes())
    app.add_routes(inspection_routes())
    return app
