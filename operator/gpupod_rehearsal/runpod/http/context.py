"""What a request handler gets to know about its caller, and how it answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from gpupod_rehearsal.runpod.contract import MAX_BODY_BYTES
from gpupod_rehearsal.runpod.pod import SimPod
from gpupod_rehearsal.runpod.problems import Problem, not_found
from gpupod_rehearsal.runpod.schema import Record, violations
from gpupod_rehearsal.runpod.world import Account, ApiKey

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.simulator import RunPodSimulator

SIMULATOR: web.AppKey[RunPodSimulator] = web.AppKey("simulator")
ACCOUNT: web.RequestKey[Account] = web.RequestKey("account")
KEY: web.RequestKey[ApiKey] = web.RequestKey("key")
#: The pod that the request is about, or that it made.
POD: web.RequestKey[str] = web.RequestKey("pod")
#: The fault that was played on the request.
FAULT: web.RequestKey[str] = web.RequestKey("fault")


def simulator(request: web.Request) -> RunPodSimulator:
    """The simulator that serves this request."""
    return request.app[SIMULATOR]


def account(request: web.Request) -> Account:
    """The caller's account."""
    return request[ACCOUNT]


def demand(request: web.Request, scope: str) -> None:
    """Refuse with 403 unless the key has the scope."""
    if not request[KEY].allows(scope):
        raise Problem(403, "access denied")


def pod_of(request: web.Request) -> SimPod:
    """The pod of the path, if the caller may see it. Raises Problem 404, as for any pod of another account."""
    pod = simulator(request).cloud.pods.get(request.match_info["id"])
    request[POD] = request.match_info["id"]
    if pod is None or pod.account != account(request).id:
        raise not_found()
    return pod


async def body_of(request: web.Request, contract: Record) -> dict[str, Any]:
    """The request's JSON body, checked. Raises Problem 400, 413, 422."""
    raw = await request.read()
    if len(raw) > MAX_BODY_BYTES:
        raise Problem(413, f"request body exceeds {MAX_BODY_BYTES} bytes")
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise Problem(400, "request could not be processed") from error
    errors = violations(contract, value)
    if errors:
        raise Problem(422, "Request validation failed.", tuple(errors))
    checked: dict[str, Any] = value
    return checked


def problem_response(problem: Problem) -> web.Response:
    """The problem as the vendor sends it."""
    return web.Response(
        status=problem.status, body=json.dumps(problem.body()).encode(), content_type="application/problem+json"
    )


def json_response(body: object, status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.json_response(body, status=status)
