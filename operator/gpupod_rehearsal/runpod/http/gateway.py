"""Everything that happens to a request before and after its handler: proxy, authentication, quota, faults, log."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from aiohttp import web

from gpupod_rehearsal.runpod.faults import Rule, Subject
from gpupod_rehearsal.runpod.http import distortions
from gpupod_rehearsal.runpod.http.context import ACCOUNT, FAULT, KEY, POD, problem_response, simulator
from gpupod_rehearsal.runpod.http.journal import Entry
from gpupod_rehearsal.runpod.problems import Problem, not_found
from gpupod_rehearsal.runpod.ratelimit import Quota

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.simulator import RunPodSimulator

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)
_NOT_ALLOWED = "The requested method is not allowed for this path."
_GONE = "REST API v1 has been retired. Use https://api.runpod.io/v2."


@web.middleware
async def gateway(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The one middleware."""
    if request.path.startswith("/_sim/"):
        return await handler(request)
    sim = simulator(request)
    await sim.catch_up()
    request_id = sim.cloud.new_id(20)
    arrived = sim.cloud.now
    status = 0
    try:
        response = await _answer(sim, request, handler)
        status = response.status
        if not response.prepared:
            response.headers["x-request-id"] = request_id
    except distortions.Cut:
        # Never sent: the connection is gone.
        response = web.Response()
    finally:
        key = request.get(KEY)
        sim.journal.add(
            Entry(
                arrived,
                request.method,
                request.path,
                request.query_string if request.path != "/graphql" else "",
                status,
                key.alias if key else None,
                request.get(POD),
                request_id,
                request.get(FAULT),
            )
        )
    return response


async def _answer(sim: RunPodSimulator, request: web.Request, handler: Handler) -> web.StreamResponse:
    if _banned(request):
        return distortions.cloudflare_page()
    if request.path.startswith("/v1") or request.host.startswith("rest."):
        return problem_response(Problem(410, _GONE))
    subject = Subject(method=request.method, path=request.path)
    response = await distortions.before_authentication(sim, request, subject)
    if response is not None:
        return response
    try:
        _authenticate(sim, request)
    except Problem as problem:
        return problem_response(problem)
    return await _authenticated(sim, request, handler)


async def _authenticated(sim: RunPodSimulator, request: web.Request, handler: Handler) -> web.StreamResponse:
    account = request[ACCOUNT]
    subject = Subject(pod=request.match_info.get("id"), account=account.id, method=request.method, path=request.path)
    quota = sim.quota(account)
    window = quota.take(sim.cloud.now)
    throttle = sim.faults.fire("rate-limited", subject) if window is None else None
    if window is not None or throttle is not None:
        if throttle is not None:
            request[FAULT] = throttle.kind.name
        return _throttled(sim, quota, window, throttle)
    response = await _handled(sim, request, handler, subject)
    if not response.prepared:
        response.headers.update(quota.headers(sim.cloud.now))
    return response


def _throttled(sim: RunPodSimulator, quota: Quota, window: str | None, throttle: Rule | None) -> web.StreamResponse:
    now = sim.cloud.now
    name = throttle.text("window") if throttle is not None else window or "minute"
    seconds = throttle.number("seconds") if throttle is not None else quota.resets_in(name, now)
    response = problem_response(Problem(429, f"rate limit exceeded for the {name} window"))
    response.headers["Retry-After"] = str(max(1, round(seconds)))
    response.headers.update(quota.headers(now, {name: seconds}))
    return response


async def _handled(
    sim: RunPodSimulator, request: web.Request, handler: Handler, subject: Subject
) -> web.StreamResponse:
    early = await distortions.before_handler(sim, request, subject)
    if early is not None:
        return early
    try:
        response = await handler(request)
        sim.cloud.touch()
        await sim.driver.settle()
    except Problem as problem:
        response = problem_response(problem)
    except web.HTTPMethodNotAllowed as refusal:
        response = problem_response(Problem(405, _NOT_ALLOWED))
        response.headers["Allow"] = ", ".join(sorted(refusal.allowed_methods))
    except web.HTTPNotFound:
        response = problem_response(not_found())
    except distortions.Cut:
        raise
    except Exception:
        _log.exception("the simulator failed on %s %s", request.method, request.path)
        raise
    return await distortions.after_handler(sim, request, subject, response)


def _banned(request: web.Request) -> bool:
    agent = request.headers.get("User-Agent", "")
    return not agent or agent.startswith("Python-urllib")


def _authenticate(sim: RunPodSimulator, request: web.Request) -> None:
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if request.path == "/graphql" and not secret:
        secret = request.query.get("api_key", "")
        scheme = "Bearer"
    if scheme.lower() != "bearer" or not secret:
        raise Problem(401, "missing bearer token")
    known = sim.cloud.authenticate(secret.strip())
    if known is None:
        raise Problem(401, "invalid bearer token")
    request[ACCOUNT], request[KEY] = known
    pod = known[1].pod
    own = request.match_info.get("id") == pod and request.path.startswith("/v2/pods/") and request.method != "PATCH"
    if pod is not None and not own:
        raise Problem(403, "access denied")
