"""`/_sim`: what a test or a report may know that no client of the vendor can, and the levers of the world."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from aiohttp import web

from gpupod_rehearsal.runpod.clock import VirtualClock
from gpupod_rehearsal.runpod.create import create
from gpupod_rehearsal.runpod.fault_catalog import CATALOG
from gpupod_rehearsal.runpod.faults import UnknownFaultError
from gpupod_rehearsal.runpod.http.context import json_response, simulator
from gpupod_rehearsal.runpod.ledger import Meter
from gpupod_rehearsal.runpod.pod import SimPod
from gpupod_rehearsal.runpod.problems import Problem


def routes() -> list[web.RouteDef]:
    """The inspection routes; they need no key and are on loopback only."""
    return [
        web.get("/_sim/ledger", ledger),
        web.get("/_sim/orphans", orphans),
        web.get("/_sim/pods", pods),
        web.get("/_sim/requests", requests),
        web.get("/_sim/clock", get_clock),
        web.post("/_sim/clock", advance_clock),
        web.get("/_sim/faults", list_faults),
        web.post("/_sim/faults", add_faults),
        web.delete("/_sim/faults", clear_faults),
        web.delete("/_sim/faults/{id}", remove_fault),
        web.post("/_sim/wedge", wedge),
        web.post("/_sim/foreign", foreign),
        web.post("/_sim/deposit", deposit),
    ]


async def ledger(request: web.Request) -> web.Response:
    """Money per pod and volume, exact, as decimal text, and the sums."""
    sim = simulator(request)
    await sim.catch_up()
    cloud = sim.cloud
    rows = [
        {
            "podId": pod.id,
            "name": pod.name,
            "account": pod.account,
            "owner": pod.owner,
            "billed": str(cloud.ledger.spent(cloud.now, subject=pod.id)),
            "secondsRunning": str(cloud.ledger.seconds(pod.id, Meter.RUNNING, cloud.now)),
            "secondsStopped": str(cloud.ledger.seconds(pod.id, Meter.STOPPED, cloud.now)),
            "created": pod.created_at.isoformat(),
            "deleted": pod.deleted_at.isoformat() if pod.deleted_at else None,
        }
        for pod in cloud.pods.values()
    ]
    volumes = [
        {"volumeId": volume.id, "billed": str(cloud.ledger.spent(cloud.now, subject=volume.id))}
        for volume in cloud.volumes.values()
    ]
    total = sum((cloud.ledger.spent(cloud.now, account=account) for account in cloud.accounts), Decimal(0))
    rates = {account: str(cloud.ledger.rate(account)) for account in cloud.accounts}
    balances = {account.id: str(cloud.balance(account)) for account in cloud.accounts.values()}
    return json_response(
        {
            "pods": rows,
            "networkVolumes": volumes,
            "total": str(total),
            "billingFactor": str(cloud.ledger.factor),
            "ratePerHour": rates,
            "balance": balances,
        }
    )


async def orphans(request: web.Request) -> web.Response:
    """Living pods with an operator's stamp whose object uid is not among the `live` ones (comma-separated)."""
    sim = simulator(request)
    await sim.catch_up()
    live = {uid for text in request.query.getall("live", []) for uid in text.split(",") if uid}
    found = [
        _truth(request, pod)
        for pod in sim.cloud.living()
        if pod.owner is not None and pod.owner.rpartition("/")[2] not in live
    ]
    return json_response({"orphans": found})


async def pods(request: web.Request) -> web.Response:
    """The true state of every pod ever made."""
    sim = simulator(request)
    await sim.catch_up()
    return json_response({"pods": [_truth(request, pod) for pod in sim.cloud.pods.values()]})


async def requests(request: web.Request) -> web.Response:
    """The request log; `method` and `since` (index) narrow it."""
    entries = list(simulator(request).journal.entries)
    since = int(request.query.get("since", "0"))
    method = request.query.get("method")
    shown = [entry.view() for entry in entries[since:] if method is None or entry.method == method.upper()]
    return json_response({"requests": shown, "count": len(entries)})


async def get_clock(request: web.Request) -> web.Response:
    """The world's time."""
    sim = simulator(request)
    return json_response({"now": sim.clock().isoformat(), "virtual": isinstance(sim.clock, VirtualClock)})


async def advance_clock(request: web.Request) -> web.Response:
    """`{"advance": seconds}` moves a virtual clock; 409 on a real one."""
    sim = simulator(request)
    if not isinstance(sim.clock, VirtualClock):
        return json_response({"error": "this world runs on the real clock"}, 409)
    await sim.advance(float((await request.json())["advance"]))
    return await get_clock(request)


async def list_faults(request: web.Request) -> web.Response:
    """Armed faults, and the catalog with stories and parameters."""
    rules = [rule.view() for rule in simulator(request).faults.rules]
    catalog = {kind.name: {"story": kind.story, "params": dict(kind.defaults)} for kind in CATALOG.values()}
    return json_response({"faults": rules, "catalog": catalog})


async def add_faults(request: web.Request) -> web.Response:
    """Arm one fault, or a list of them; 422 names what is wrong."""
    sim = simulator(request)
    await sim.catch_up()
    document = await request.json()
    wanted: list[Any] = document if isinstance(document, list) else [document]
    try:
        rules = [sim.faults.load(item) for item in wanted]
    except (UnknownFaultError, ValueError) as error:
        return json_response({"error": str(error)}, 422)
    await sim.catch_up()
    return json_response({"faults": [rule.view() for rule in rules]}, 201)


async def clear_faults(request: web.Request) -> web.Response:
    """Disarm everything."""
    simulator(request).faults.clear()
    await simulator(request).catch_up()
    return web.Response(status=204)


async def remove_fault(request: web.Request) -> web.Response:
    """Disarm one fault; whoever it gripped recovers."""
    sim = simulator(request)
    if not sim.faults.remove(request.match_info["id"]):
        return json_response({"error": "no such fault"}, 404)
    await sim.catch_up()
    return web.Response(status=204)


async def wedge(request: web.Request) -> web.Response:
    """`?pod=<id or name>` wedges a running pod now; `ports=kept`, `mode=refuse` as in the fault `wedge-later`."""
    sim = simulator(request)
    await sim.catch_up()
    options = {name: request.query[name] for name in ("ports", "mode") if name in request.query}
    target = {name: request.query[name] for name in ("pod", "host") if name in request.query}
    rule = sim.faults.load({"name": "wedge-later", "target": target, "params": options})
    await sim.catch_up()
    return json_response(rule.view(), 201)


async def foreign(request: web.Request) -> web.Response:
    """Make a pod as a person at the console would; body: `account`, and fields of a create body."""
    sim = simulator(request)
    await sim.catch_up()
    given = dict(await request.json()) if request.can_read_body else {}
    account = sim.cloud.accounts[given.pop("account", next(iter(sim.cloud.accounts)))]
    cluster = given.pop("cluster", None)
    body = {
        "name": "someone-elses",
        "image": "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404",
        "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 1},
        "ports": ["22/tcp"],
        **given,
    }
    try:
        pod = create(sim.cloud, account, body)
    except Problem as problem:
        return json_response(problem.body(), problem.status)
    pod.cluster = cluster
    return json_response(_truth(request, pod), 201)


async def deposit(request: web.Request) -> web.Response:
    """`{"account": id, "amount": "25.00"}` adds credit."""
    sim = simulator(request)
    document = await request.json()
    sim.cloud.accounts[document["account"]].deposited += Decimal(str(document["amount"]))
    return web.Response(status=204)


def _truth(request: web.Request, pod: SimPod) -> dict[str, object]:
    sim = simulator(request)
    directory = getattr(sim.hosts, "directory", None)
    return {
        "podId": pod.id,
        "name": pod.name,
        "account": pod.account,
        "owner": pod.owner,
        "nonce": pod.container.env.get("GPUPOD_NONCE"),
        "status": pod.status.value,
        "alive": pod.alive,
        "host": pod.host,
        "dataCenter": pod.data_center,
        "gpuType": pod.gpu_type,
        "gpuCount": pod.gpu_count,
        "starts": pod.starts,
        "startedAt": pod.started_at.isoformat() if pod.started_at else None,
        "created": pod.created_at.isoformat(),
        "deleted": pod.deleted_at.isoformat() if pod.deleted_at else None,
        "endedBy": pod.ended_by,
        "reachable": pod.reachable and pod.container_at is not None,
        "ports": [[port.private, port.public, port.protocol, port.ip] for port in pod.ports],
        "directory": str(directory(pod.id)) if directory is not None else None,
        "logs": [line.line for line in pod.logs],
    }
