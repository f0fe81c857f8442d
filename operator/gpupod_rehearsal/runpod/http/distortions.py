"""Faults of the API itself: what is played on a request before, and on its answer after, the handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from aiohttp import web

from gpupod_rehearsal.runpod.faults import Rule, Subject
from gpupod_rehearsal.runpod.http.context import FAULT, POD, problem_response
from gpupod_rehearsal.runpod.problems import Problem, not_found

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.simulator import RunPodSimulator

_PAGE = "<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1><p>cloudflare</p></body></html>"
_BANNED = "<!DOCTYPE html><html><body><h1>Access denied</h1><p>error code: 1010</p></body></html>"
_INTERNAL = "Something went wrong. Please try again later or contact support."


class Cut(Exception):
    """The connection was reset without an answer."""


def cloudflare_page() -> web.Response:
    """The proxy's ban of a client it does not like: not JSON, and no verdict on the key."""
    return web.Response(status=403, text=_BANNED, content_type="text/html")


async def before_authentication(sim: RunPodSimulator, request: web.Request, subject: Subject) -> web.Response | None:
    """Faults of the proxy in front of the API."""
    if _fired(sim, request, "cloudflare-1010", subject):
        return cloudflare_page()
    rule = _fired(sim, request, "html-502", subject)
    if rule is not None:
        status = int(rule.number("status"))
        return web.Response(status=status, text=_PAGE.format(title=f"{status} Bad gateway"), content_type="text/html")
    if _fired(sim, request, "api-gone-410", subject):
        return problem_response(Problem(410, "This API has been retired."))
    if _fired(sim, request, "drop", subject):
        cut(request)
    return None


async def before_handler(sim: RunPodSimulator, request: web.Request, subject: Subject) -> web.Response | None:
    """Faults of the API before anything is done."""
    rule = _fired(sim, request, "slow", subject)
    if rule is not None:
        await sim.clock.sleep(rule.number("seconds"))
    rule = _fired(sim, request, "http-500", subject)
    if rule is not None:
        return problem_response(Problem(int(rule.number("status")), _INTERNAL))
    if _fired(sim, request, "unauthorized", subject):
        return problem_response(Problem(401, "invalid bearer token"))
    if _fired(sim, request, "forbidden", subject):
        return problem_response(Problem(403, "access denied"))
    pod = sim.cloud.pods.get(request.match_info.get("id", ""))
    if pod is None:
        return None
    deletes = request.method == "DELETE"
    if deletes and _fired(sim, request, "delete-404-alive", sim.cloud.subject(pod, request.method, request.path)):
        request[POD] = pod.id
        return problem_response(not_found())
    age = (sim.cloud.now - pod.created_at).total_seconds()
    rule = sim.faults.grip("post-create-404", sim.cloud.subject(pod), pod.id)
    if rule is not None and age < rule.number("seconds"):
        request[POD], request[FAULT] = pod.id, rule.kind.name
        return problem_response(not_found())
    return None


async def after_handler(
    sim: RunPodSimulator, request: web.Request, subject: Subject, response: web.StreamResponse
) -> web.StreamResponse:
    """Faults after the work is done: the answer is lost, late or wrong."""
    if request.method == "POST" and request.path == "/v2/pods" and response.status == 201:
        pod = sim.cloud.pods[request[POD]]
        response = await _after_create(sim, request, sim.cloud.subject(pod, "POST", request.path), response)
    if response.status < 400 and _fired(sim, request, "answer-lost", subject):
        cut(request)
    return response


async def _after_create(
    sim: RunPodSimulator, request: web.Request, subject: Subject, response: web.StreamResponse
) -> web.StreamResponse:
    rule = _fired(sim, request, "create-then-500", subject)
    if rule is not None:
        return problem_response(Problem(int(rule.number("status")), _INTERNAL))
    if _fired(sim, request, "create-then-drop", subject):
        cut(request)
    rule = _fired(sim, request, "create-then-slow", subject)
    if rule is not None:
        await sim.clock.sleep(rule.number("seconds"))
    if _fired(sim, request, "create-vanishes", subject):
        vanished = sim.cloud.pods.pop(request[POD])
        sim.cloud.ledger.close(vanished.id, sim.cloud.now)
    if _fired(sim, request, "create-then-garbage", subject):
        return web.Response(status=201, text='{"id": "', content_type="application/json")
    return response


def cut(request: web.Request) -> NoReturn:
    """Reset the connection without an answer. Raises Cut."""
    transport = request.transport
    if transport is not None:
        transport.abort()
    raise Cut


def _fired(sim: RunPodSimulator, request: web.Request, name: str, subject: Subject) -> Rule | None:
    rule = sim.faults.fire(name, subject)
    if rule is not None:
        request[FAULT] = name
    return rule
