"""`/v2/billing/pods`: what each pod cost per bucket of time, ended pods included."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from aiohttp import web

from gpupod_rehearsal.runpod.http.context import account, demand, json_response, simulator
from gpupod_rehearsal.runpod.problems import bad_request, invalid
from gpupod_rehearsal.runpod.views import rfc3339

_SIZES = ("hour", "day", "week", "month", "year")
#: Bills lag about an hour behind the clock on the live service.
_LAG = timedelta(hours=1)
_MAX_BUCKETS = 20_000


def routes() -> list[web.RouteDef]:
    """The pod bills."""
    return [web.get("/v2/billing/pods", pod_bills, allow_head=False)]


async def pod_bills(request: web.Request) -> web.Response:
    """Records per pod and bucket in a window given by `startTime` and `endTime`, or by `lastN` buckets."""
    demand(request, "billing:read")
    cloud, owner = simulator(request).cloud, account(request)
    size, start, end = _window(request, cloud.now)
    only = request.query.get("podId")
    until = cloud.now - _LAG / float(cloud.ledger.factor)
    records: list[dict[str, Any]] = []
    for begin, finish in _buckets(size, start, end):
        sums: dict[str, tuple[Decimal, Decimal, bool]] = {}
        for segment in cloud.ledger.segments:
            pod = cloud.pods.get(segment.subject)
            if segment.account != owner.id or pod is None or only not in {None, pod.id}:
                continue
            compute, disk = cloud.ledger.amounts(segment, begin, max(begin, min(finish, until)))
            if compute or disk:
                before = sums.get(pod.id, (Decimal(0), Decimal(0), False))
                sums[pod.id] = (before[0] + compute, before[1] + disk, pod.cpu_flavor is not None)
        records += [
            {"podId": pod_id, "startTime": rfc3339(begin), "endTime": rfc3339(finish), **_amounts(*amount)}
            for pod_id, amount in sums.items()
        ]
    totals = {
        name: sum(record[name] for record in records)
        for name in ("totalAmount", "gpuAmount", "cpuAmount", "diskAmount")
    }
    query = {"startTime": rfc3339(start), "endTime": rfc3339(end), "bucketSize": size, "podId": only}
    metadata = {
        "query": query,
        "recordCount": len(records),
        "uniquePodCount": len({record["podId"] for record in records}),
        "totals": totals,
    }
    return json_response({"records": records, "metadata": metadata})


def _amounts(compute: Decimal, disk: Decimal, cpu: bool) -> dict[str, float]:
    return {
        "totalAmount": float(compute + disk),
        "gpuAmount": 0.0 if cpu else float(compute),
        "cpuAmount": float(compute) if cpu else 0.0,
        "diskAmount": float(disk),
    }


def _window(request: web.Request, now: datetime) -> tuple[str, datetime, datetime]:
    size = request.query.get("bucketSize", "day")
    if size not in _SIZES:
        raise invalid(f"bucketSize: value must be one of {', '.join(map(repr, _SIZES))}")
    last = request.query.get("lastN")
    if last is not None:
        if "startTime" in request.query or "endTime" in request.query:
            raise bad_request("lastN and startTime/endTime are mutually exclusive")
        if not last.isdecimal() or int(last) < 1:
            raise invalid("lastN: minimum: want 1")
        start = _floor(now, size)
        for _ in range(int(last) - 1):
            start = _floor(start - timedelta(seconds=1), size)
        return size, start, _next(_floor(now, size), size)
    start = _floor(_time(request, "startTime", now - timedelta(days=30)), size)
    end = _time(request, "endTime", now)
    return size, start, end if end == _floor(end, size) else _next(_floor(end, size), size)


def _time(request: web.Request, name: str, default: datetime) -> datetime:
    text = request.query.get(name)
    if text is None:
        return default
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise invalid(f"{name}: must be an RFC 3339 timestamp") from error
    if at.tzinfo is None:
        raise invalid(f"{name}: must be an RFC 3339 timestamp")
    return at


def _buckets(size: str, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    found: list[tuple[datetime, datetime]] = []
    while start < end and len(found) < _MAX_BUCKETS:
        following = _next(start, size)
        found.append((start, following))
        start = following
    return found


def _floor(at: datetime, size: str) -> datetime:
    at = at.replace(minute=0, second=0, microsecond=0)
    if size == "hour":
        return at
    at = at.replace(hour=0)
    if size == "week":
        return at - timedelta(days=at.weekday())
    if size == "month":
        return at.replace(day=1)
    return at.replace(month=1, day=1) if size == "year" else at


def _next(at: datetime, size: str) -> datetime:
    if size == "hour":
        return at + timedelta(hours=1)
    if size == "day":
        return at + timedelta(days=1)
    if size == "week":
        return at + timedelta(days=7)
    if size == "month":
        return _floor(at + timedelta(days=32), "month")
    return at.replace(year=at.year + 1)
