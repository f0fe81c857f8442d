"""Routes of Xet storage, for the client's native `hf_xet` part: a token, then xorbs and shards."""

from __future__ import annotations

import secrets
from datetime import timedelta

from aiohttp import web

from gpupod_rehearsal.hub import refusals
from gpupod_rehearsal.hub.call import Call

TOKEN_LIFE = timedelta(hours=1)


async def write_token(call: Call) -> web.Response:
    """A short-lived token for the storage. Python reads the headers, the native part reads the body: both are sent."""
    call.writable()
    call.revision(call.readable())
    cas_url = f"{call.state.url}/_xet"
    access = secrets.token_urlsafe(18)
    call.state.xet_tokens.add(access)
    # The client compares the expiry with the wall clock, whatever clock this Hub runs on.
    expires = int(call.state.wall_clock.now().timestamp() + TOKEN_LIFE.total_seconds())
    return web.json_response(
        {"casUrl": cas_url, "exp": expires, "accessToken": access},
        headers={
            "X-Xet-Cas-Url": cas_url,
            "X-Xet-Access-Token": access,
            "X-Xet-Token-Expiration": str(expires),
        },
    )


async def known_chunks(_call: Call) -> web.Response:
    """Global deduplication: this storage offers none, so every chunk is uploaded."""
    raise refusals.HubRefusedError(404, "No shard for this chunk")


async def put_xorb(call: Call) -> web.Response:
    """Store packed chunks."""
    _authorize(call)
    inserted = call.state.xet.put_xorb(call.parts["digest"], await call.request.read())
    return web.json_response({"was_inserted": inserted})


async def put_shard(call: Call) -> web.Response:
    """Learn which chunks make which files; refused while a named xorb is missing."""
    _authorize(call)
    try:
        call.state.xet.put_shard(await call.request.read())
    except ValueError as error:
        raise refusals.bad_request(str(error)) from error
    return web.json_response({"result": 1})


async def telemetry(_call: Call) -> web.Response:
    """The client reports its timings; nobody reads them here."""
    return web.Response(status=204)


def _authorize(call: Call) -> None:
    scheme, _, access = call.request.headers.get("Authorization", "").partition(" ")
    if scheme != "Bearer" or access not in call.state.xet_tokens:
        raise refusals.invalid_token()
