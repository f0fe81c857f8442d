"""`/v2/pods/{id}/logs`: a tail of the pod's log lines as server-sent events, then new ones as they come."""

from __future__ import annotations

import asyncio
import contextlib
import json
from datetime import datetime

from aiohttp import web

from gpupod_rehearsal.runpod.http.context import account, demand, pod_of, simulator
from gpupod_rehearsal.runpod.pod import LogLine, SimPod
from gpupod_rehearsal.runpod.problems import invalid
from gpupod_rehearsal.runpod.views import rfc3339

_KEEP_ALIVE_SECONDS = 15.0


def routes() -> list[web.RouteDef]:
    """The log stream."""
    return [web.get("/v2/pods/{id}/logs", stream, allow_head=False)]


async def stream(request: web.Request) -> web.StreamResponse:
    """`source` is container or system, `tail` (0..5000, default 100) the past, `since` or `Last-Event-ID` a start."""
    demand(request, "pods:read")
    sim, pod = simulator(request), pod_of(request)
    source, tail, since = request.query.get("source"), _tail(request), _since(request)
    if source not in {None, "container", "system"}:
        raise invalid("source: value must be one of 'container', 'system'")
    response = web.StreamResponse(
        headers={
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-cache",
            "Connection": "keep-alive",
            "X-Accel-Buffering": "no",
            **sim.quota(account(request)).headers(sim.cloud.now),
            "x-request-id": sim.cloud.new_id(20),
        }
    )
    await response.prepare(request)
    past = [line for line in pod.logs if _wanted(line, source, since)]
    for line in past[len(past) - min(tail, len(past)) :]:
        await response.write(_event(line))
    seen = len(pod.logs)
    with contextlib.suppress(ConnectionResetError):
        await _follow(request, response, pod, source, seen)
    return response


async def _follow(
    request: web.Request, response: web.StreamResponse, pod: SimPod, source: str | None, seen: int
) -> None:
    sim = simulator(request)
    while pod.alive and not sim.closing:
        changed = sim.changed
        for line in pod.logs[seen:]:
            if _wanted(line, source, None):
                await response.write(_event(line))
        seen = len(pod.logs)
        try:
            async with asyncio.timeout(_KEEP_ALIVE_SECONDS):
                await changed.wait()
        except TimeoutError:
            await response.write(b": keep-alive\n\n")


def _event(line: LogLine) -> bytes:
    at = rfc3339(line.at)
    data = json.dumps({"ts": at, "source": line.source, "line": line.line})
    return f"id: {at}/{line.sequence:012d}\ndata: {data}\n\n".encode()


def _wanted(line: LogLine, source: str | None, since: tuple[datetime, int] | None) -> bool:
    if source is not None and line.source != source:
        return False
    return since is None or (line.at, line.sequence) > since


def _tail(request: web.Request) -> int:
    text = request.query.get("tail", "100")
    if not text.isdecimal() or int(text) > 5_000:
        raise invalid("tail: must be between 0 and 5000")
    return int(text)


def _since(request: web.Request) -> tuple[datetime, int] | None:
    text = request.headers.get("Last-Event-ID") or request.query.get("since")
    if text is None:
        return None
    stamp, _, sequence = text.partition("/")
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError as error:
        raise invalid("since: must be an RFC 3339 timestamp") from error
    if at.tzinfo is None:
        raise invalid("since: must be an RFC 3339 timestamp")
    return at, int(sequence) if sequence.isdecimal() else 0
