"""A fleet's requests go out a few at a time, in order, and are timed from when they go out."""

import asyncio

import pytest

from gpupod_operator.cluster.transport import ApiTransport
from gpupod_operator.runtime.turns import TurnTaking


@pytest.fixture
def server(monkeypatch):
    """In place of the network: requests stay under way until `let_go`."""

    class Server:
        def __init__(self):
            self.under_way, self.arrived = {}, []

        async def request(self, _transport, _method, path, **_options):
            self.arrived.append(path)
            self.under_way[path] = asyncio.get_running_loop().create_future()
            try:
                return await self.under_way[path]
            finally:
                del self.under_way[path]

    server = Server()

    async def request(transport, *args, **options):
        return await server.request(transport, *args, **options)

    monkeypatch.setattr(ApiTransport, "request", request)
    return server


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


async def test_no_more_than_the_given_number_are_under_way_and_the_first_to_come_is_the_next_to_go(server):
    line = TurnTaking(at_once=2)
    asked = [asyncio.create_task(line.request("GET", f"/{n}")) for n in range(4)]
    await settle()
    assert server.arrived == ["/0", "/1"]
    server.under_way["/1"].set_result({"n": 1})
    await settle()
    assert server.arrived == ["/0", "/1", "/2"]
    assert await asked[1] == {"n": 1}
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_a_request_that_fails_or_is_cancelled_gives_its_turn_back(server):
    line = TurnTaking(at_once=1)
    failing = asyncio.create_task(line.request("GET", "/failing"))
    cancelled = asyncio.create_task(line.request("GET", "/cancelled"))
    last = asyncio.create_task(line.request("GET", "/last"))
    await settle()
    server.under_way["/failing"].set_exception(OSError("cut"))
    await settle()
    assert isinstance(failing.exception(), OSError)
    cancelled.cancel()
    await settle()
    server.under_way["/last"].set_result({})
    assert await last == {}
