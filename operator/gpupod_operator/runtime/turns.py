"""The fleet's line to the API server: a bounded number of requests at once, first come first served.

Without it a thousand loops wait for a free connection inside the HTTP client, where the time allowed for connecting
runs while they wait: under load every request would time out without ever having been sent.
"""

from __future__ import annotations

import asyncio
from typing import Any

from gpupod_operator.cluster.transport import ApiTransport

AT_ONCE = 12
"""Fewer than the transport's connections. A TLS connection holds about 0.4 MB, and more at once are not faster: this
process is one thread (1.3 ms of it per write) and the API server answers within 3 to 10 ms."""


class TurnTaking(ApiTransport):
    """An ApiTransport whose timeouts begin when the request gets its turn."""

    def __init__(self, *, at_once: int = AT_ONCE) -> None:
        super().__init__()
        self._turns = asyncio.Semaphore(at_once)

    async def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """As `ApiTransport.request`, after whoever came before."""
        async with self._turns:
            return await super().request(method, path, **options)
