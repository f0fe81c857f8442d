"""`/v2/pods`: list with cursors, create, read, change, act, delete."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import timedelta
from typing import TYPE_CHECKING

from aiohttp import web

from gpupod_rehearsal.runpod import contract
from gpupod_rehearsal.runpod.create import create
from gpupod_rehearsal.runpod.faults import Subject
from gpupod_rehearsal.runpod.http.context import POD, account, body_of, demand, json_response, pod_of, simulator
from gpupod_rehearsal.runpod.pod import SimPod
from gpupod_rehearsal.runpod.problems import invalid, not_found
from gpupod_rehearsal.runpod.verbs import act, refuse_cluster_member, update
from gpupod_rehearsal.runpod.views import pod_view

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.simulator import RunPodSimulator
    from gpupod_rehearsal.runpod.world import Account

_MAX_PAGE = 1_000


def routes() -> list[web.RouteDef]:
    """Routes of the pod resource."""
    return [
        web.get("/v2/pods", list_pods, allow_head=False),
        web.post("/v2/pods", create_pod),
        web.get("/v2/pods/{id}", get_pod, allow_head=False),
        web.patch("/v2/pods/{id}", patch_pod),
        web.delete("/v2/pods/{id}", delete_pod),
        web.post("/v2/pods/{id}/action", pod_action),
    ]


async def list_pods(request: web.Request) -> web.Response:
    """One page of the account's pods, oldest first. Unknown query parameters are ignored."""
    demand(request, "pods:read")
    sim, owner = simulator(request), account(request)
    with_members = request.query.get("includeClusterPods", "").lower() == "true"
    pods = [pod for pod in _listed(sim, owner) if with_members or pod.cluster is None]
    subject = Subject(account=owner.id, method="GET", path=request.path)
    if sim.faults.fire("empty-list", subject):
        pods = []
    views = [_view(sim, pod) for pod in pods]
    if sim.profile is contract.Profile.AUGUST:
        if views and sim.faults.fire("duplicate-ids", subject):
            views.append(views[0])
        return json_response({"pods": views})
    start, limit = _cursor(request, owner, pods), _limit(request)
    page, more = views[start : start + limit], start + limit < len(views)
    cursor = _encode(owner, pods[start + limit - 1]) if more else None
    if sim.faults.fire("truncated-page", subject):
        page, more, cursor = page[: max(1, len(page) // 2)] if len(page) > 1 else [], True, None
    if sim.faults.fire("repeated-cursor", subject):
        more, cursor = True, request.query.get("cursor") or (_encode(owner, pods[0]) if pods else None)
    if page and sim.faults.fire("duplicate-ids", subject):
        page = [*page, page[0]]
    return json_response({"pods": page, "pagination": {"nextCursor": cursor, "hasNextPage": more}})


async def create_pod(request: web.Request) -> web.Response:
    """201 with a pod in PROVISIONING."""
    demand(request, "pods:write")
    sim = simulator(request)
    body = await body_of(request, contract.create_pod(sim.profile))
    pod = create(sim.cloud, account(request), body)
    request[POD] = pod.id
    return json_response(_view(sim, pod), 201)


async def get_pod(request: web.Request) -> web.Response:
    """The pod, or 404."""
    demand(request, "pods:read")
    pod = _visible(request)
    return json_response(_view(simulator(request), pod))


async def patch_pod(request: web.Request) -> web.Response:
    """The changed pod."""
    demand(request, "pods:write")
    sim = simulator(request)
    body = await body_of(request, contract.update_pod(sim.profile))
    pod = _alive(request)
    update(sim.cloud, account(request), pod, body)
    return json_response(_view(sim, pod))


async def delete_pod(request: web.Request) -> web.Response:
    """204; 404 when there is no such pod for this key."""
    demand(request, "pods:write")
    pod = _alive(request)
    refuse_cluster_member(pod)
    act(simulator(request).cloud, account(request), pod, "terminate")
    return web.Response(status=204)


async def pod_action(request: web.Request) -> web.Response:
    """200 with the pod; 204 for terminate."""
    demand(request, "pods:write")
    sim = simulator(request)
    body = await body_of(request, contract.POD_ACTION)
    pod = _alive(request)
    act(sim.cloud, account(request), pod, body["action"])
    return web.Response(status=204) if body["action"] == "terminate" else json_response(_view(sim, pod))


def _view(sim: RunPodSimulator, pod: SimPod) -> dict[str, object]:
    return pod_view(sim.cloud, pod, sim.profile)


def _alive(request: web.Request) -> SimPod:
    pod = pod_of(request)
    if not pod.alive:
        raise not_found("pod not found")
    return pod


def _visible(request: web.Request) -> SimPod:
    pod = pod_of(request)
    if not pod.alive and not _lingers(simulator(request), pod):
        raise not_found("pod not found")
    return pod


def _listed(sim: RunPodSimulator, owner: Account) -> list[SimPod]:
    """Pods a list shows: the living, the lingering, bent by a lagging list."""
    shown = []
    for pod in sim.cloud.pods_of(owner):
        lag = sim.faults.grip("list-lag", sim.cloud.subject(pod), pod.id)
        there = pod.alive or _lingers(sim, pod)
        if lag is not None and pod.alive:
            there = sim.cloud.now >= pod.created_at + timedelta(seconds=lag.number("fresh"))
        elif lag is not None and pod.deleted_at is not None:
            there = there or sim.cloud.now < pod.deleted_at + timedelta(seconds=lag.number("deleted"))
        if there:
            shown.append(pod)
    return shown


def _lingers(sim: RunPodSimulator, pod: SimPod) -> bool:
    rule = sim.faults.grip("delete-lingers", sim.cloud.subject(pod), pod.id)
    if rule is None or pod.deleted_at is None:
        return False
    return sim.cloud.now < pod.deleted_at + timedelta(seconds=rule.number("seconds"))


def _limit(request: web.Request) -> int:
    text = request.query.get("limit")
    if text is None:
        return _MAX_PAGE
    if not text.isdecimal() or not 1 <= int(text) <= _MAX_PAGE:
        raise invalid(f"limit: must be between 1 and {_MAX_PAGE}")
    return int(text)


def _cursor(request: web.Request, owner: Account, pods: list[SimPod]) -> int:
    """Index of the first pod after the cursor. Raises Problem 422 for a malformed or foreign cursor."""
    text = request.query.get("cursor")
    if not text:
        return 0
    try:
        mark = json.loads(base64.urlsafe_b64decode(text))
        foreign, after = mark["account"] != owner.id, (str(mark["created"]), str(mark["id"]))
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise invalid("cursor: malformed") from error
    if foreign:
        raise invalid("cursor: malformed")
    return sum(1 for pod in pods if _place(pod) <= after)


def _encode(owner: Account, pod: SimPod) -> str:
    created, pod_id = _place(pod)
    return base64.urlsafe_b64encode(
        json.dumps({"account": owner.id, "created": created, "id": pod_id}).encode()
    ).decode()


def _place(pod: SimPod) -> tuple[str, str]:
    return (f"{pod.created_at.timestamp():020.6f}", pod.id)
