"""The control plane's own servers die and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gpupod_rehearsal.controlplane.process import Server
from worldkit.fixtures import Theatre

SERVERS = ("kube-apiserver", "etcd")


@asynccontextmanager
async def crashed(theatre: Theatre, which: str) -> AsyncIterator[None]:
    """Inside, the server is killed; afterwards it runs on the same port with the same data, and the API answers."""
    plane = theatre.stage.plane
    server: Server = plane.apiserver if which == "kube-apiserver" else plane.etcd
    server.kill()
    try:
        yield
    finally:
        await asyncio.to_thread(server.start)
        await asyncio.to_thread(plane.apiserver.wait_ready)
