"""`/graphql`: the reading part of the vendor's old API, as far as its Python SDK needs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from gpupod_rehearsal.runpod.catalog import GpuType
from gpupod_rehearsal.runpod.graphql_query import Field, QueryError, parse
from gpupod_rehearsal.runpod.http.context import account, json_response, simulator
from gpupod_rehearsal.runpod.pod import SimPod, Status
from gpupod_rehearsal.runpod.views import hourly_cost, rfc3339, visible_ports

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.cloud import Cloud

Data = dict[str, Any]


def routes() -> list[web.RouteDef]:
    """The GraphQL endpoint."""
    return [web.post("/graphql", answer)]


async def answer(request: web.Request) -> web.Response:
    """200 with data, 200 with errors for what this subset does not do, 400 for a query that does not parse or fit."""
    try:
        document = json.loads(await request.read())
        fields = parse(str(document["query"]), document.get("variables") or {})
        if any(field.name not in {"myself", "pod", "gpuTypes"} for field in fields):
            message = "This rehearsal serves GraphQL for reading only; use REST v2."
            errors = [{"message": message, "path": [fields[0].name], "extensions": {"code": "RUNPOD"}}]
            return json_response({"errors": errors, "data": None})
        return json_response({"data": {field.name: _select(_root(request, field), field) for field in fields}})
    except (ValueError, KeyError, TypeError) as error:
        code = "GRAPHQL_VALIDATION_FAILED" if isinstance(error, QueryError) and error.valid else "GRAPHQL_PARSE_FAILED"
        return json_response({"errors": [{"message": str(error), "extensions": {"code": code}}]}, 400)


def _root(request: web.Request, field: Field) -> Any:
    cloud = simulator(request).cloud
    if field.name == "gpuTypes":
        wanted = field.arguments.get("input", {}).get("id")
        return [_gpu(gpu) for gpu in cloud.gpu_types.values() if wanted is None or gpu.id == wanted]
    if field.name == "pod":
        pod = cloud.pods.get(str(field.arguments.get("input", {}).get("podId")))
        return _pod(cloud, pod) if pod is not None and pod.alive and pod.account == account(request).id else None
    return _myself(request, cloud)


def _myself(request: web.Request, cloud: Cloud) -> Data:
    owner = account(request)
    volumes = [item for item in cloud.volumes.values() if item.account == owner.id and item.deleted_at is None]
    return {
        "id": owner.id,
        "email": owner.email,
        "pubKey": "\n".join(owner.ssh_keys),
        "clientBalance": float(cloud.balance(owner)),
        "currentSpendPerHr": float(cloud.ledger.rate(owner.id)),
        "spendLimit": float(owner.spend_limit),
        "networkVolumes": [
            {"id": item.id, "name": item.name, "size": item.size, "dataCenterId": item.data_center} for item in volumes
        ],
        "pods": [_pod(cloud, pod) for pod in cloud.pods_of(owner) if pod.alive],
    }


def _pod(cloud: Cloud, pod: SimPod) -> Data:
    box, host = pod.container, cloud.hosts[pod.host]
    stopped = pod.status is Status.EXITED
    changed = f"Exited by {pod.ended_by}" if stopped else "Rented by User"
    return {
        "id": pod.id,
        "name": pod.name,
        "desiredStatus": "EXITED" if stopped else "RUNNING",
        "lastStatusChange": f"{changed}: {pod.started_at or pod.created_at:%a %b %d %Y %H:%M:%S GMT+0000}",
        "lastStartedAt": rfc3339(pod.started_at) if pod.started_at else None,
        "createdAt": rfc3339(pod.created_at),
        "costPerHr": float(hourly_cost(pod)),
        "adjustedCostPerHr": float(hourly_cost(pod)),
        "gpuCount": pod.gpus_shown,
        "vcpuCount": pod.vcpus,
        "memoryInGb": pod.memory,
        "containerDiskInGb": box.disk,
        "volumeInGb": pod.persistent["size"] if pod.persistent else 0,
        "volumeMountPath": pod.persistent["path"] if pod.persistent else (pod.network or {}).get("path"),
        "networkVolumeId": (pod.network or {}).get("volumeId"),
        "imageName": box.image,
        "dockerArgs": box.args,
        "dockerId": None,
        "env": [f"{key}={value}" for key, value in box.env.items()],
        "port": None,
        "ports": ",".join(box.ports),
        "podType": "RESERVED",
        "templateId": None,
        "uptimeSeconds": 0,
        "machineId": host.id,
        "machine": {
            "podHostId": f"{pod.id}-{host.fingerprint}",
            "gpuDisplayName": cloud.gpu_types[pod.gpu_type].name if pod.gpu_type else None,
            "dataCenterId": host.data_center,
            "secureCloud": host.cloud == "SECURE",
        },
        "runtime": _runtime(cloud, pod),
    }


def _runtime(cloud: Cloud, pod: SimPod) -> Data | None:
    if pod.container_at is None:
        return None
    ports = [
        {
            "ip": port.ip,
            "isIpPublic": port.public is not None,
            "privatePort": port.private,
            "publicPort": port.public,
            "type": port.protocol,
        }
        for port in visible_ports(cloud, pod)
    ]
    gpus = [{"id": f"GPU-{n}", "gpuUtilPercent": 0, "memoryUtilPercent": 0} for n in range(pod.gpus_shown)]
    uptime = int((cloud.now - pod.container_at).total_seconds())
    container = {"cpuPercent": 1, "memoryPercent": 2}
    return {"uptimeInSeconds": uptime, "ports": ports or None, "gpus": gpus, "container": container}


def _gpu(gpu: GpuType) -> Data:
    secure, community = gpu.secure_price, gpu.community_price
    prices: Data = {
        "securePrice": float(secure) if secure is not None else None,
        "communityPrice": float(community) if community is not None else None,
    }
    prices |= dict.fromkeys(("oneWeekPrice", "oneMonthPrice", "threeMonthPrice", "sixMonthPrice", "oneYearPrice"))
    prices |= dict.fromkeys(("communitySpotPrice", "secureSpotPrice", "clusterPrice"))
    return {
        "id": gpu.id,
        "displayName": gpu.name,
        "manufacturer": "Nvidia",
        "memoryInGb": gpu.memory,
        "cudaCores": 0,
        "secureCloud": secure is not None,
        "communityCloud": community is not None,
        "maxGpuCount": gpu.max_count,
        **prices,
        "lowestPrice": {
            "minimumBidPrice": None,
            "uninterruptablePrice": float(secure) if secure is not None else None,
            "stockStatus": "High",
        },
    }


def _select(value: Any, field: Field) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return [_select(item, field) for item in value]
    if isinstance(value, dict):
        missing = [child.name for child in field.children if child.name not in value]
        if missing:
            raise QueryError(f'Cannot query field "{missing[0]}" on "{field.name}".', valid=True)
        return {child.name: _select(value[child.name], child) for child in field.children}
    return value
