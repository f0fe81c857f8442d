"""The line between the operator and the API server: a test cuts it, mends it, and sees what came over it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ssl
from collections.abc import Iterator
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from gpupod_rehearsal.demo.processes import Child
from gpupod_rehearsal.demo.stage import Stage

_CHUNK = 1 << 16
_GONE = b'"code":410'


class Wire:
    """`async with Wire(stage) as wire:` passes bytes on to the stage's API server, with that server's certificate."""

    def __init__(self, stage: Stage) -> None:
        self.gone = 0
        """Answers and watch events with the code 410 that went over it to the operator."""
        self._stage = stage
        pki = stage.plane.access.ca.parent
        self._inside = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._inside.load_cert_chain(pki / "tls.crt", pki / "tls.key")
        self._outside = ssl.create_default_context(cafile=str(stage.plane.access.ca))
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.StreamWriter] = set()
        self._whole = True

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0, ssl=self._inside)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self._reset()
        await self._server.wait_closed()

    @contextlib.contextmanager
    def cut(self) -> Iterator[None]:
        """Inside, open connections are reset, and new ones as soon as they are made."""
        self._whole = False
        self._reset()
        try:
            yield
        finally:
            self._whole = True

    async def start_operator(self) -> Child:
        """An operator process that knows the API server by this wire only; the stage's other clients stay direct."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        direct = self._stage.plane.access
        self._stage.plane.access = dataclasses.replace(direct, url=f"https://127.0.0.1:{port}")
        try:
            return await self._stage.start_operator()
        finally:
            self._stage.plane.access = direct

    def _reset(self) -> None:
        for line in self._lines:
            line.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        if not self._whole:
            writer.transport.abort()
            return
        address = urlsplit(self._stage.plane.access.url)
        try:
            there, back = await asyncio.open_connection(address.hostname, address.port, ssl=self._outside)
        except OSError:
            # nobody listens there at the moment: so for the operator nobody listens here
            writer.transport.abort()
            return
        lines = {writer, back}
        self._lines |= lines
        try:
            ways = [asyncio.create_task(_pass(reader, back)), asyncio.create_task(self._answers(there, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            self._lines -= lines
            for line in lines:
                # not abort: what was written is still on its way
                line.close()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tail = b""
        while chunk := await reader.read(_CHUNK):
            seen = tail + chunk
            self.gone += seen.count(_GONE)
            # shorter than the mark, so nothing is counted twice
            tail = seen[-len(_GONE) + 1 :]
            writer.write(chunk)
            await writer.drain()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK):
        writer.write(chunk)
        await writer.drain()
