"""`/v2/catalog`: GPU types, CPU flavors, data centers and public templates, with stock where asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aiohttp import web

from gpupod_rehearsal.runpod.catalog import CUDA_VERSIONS, CpuFlavor, DataCenter, GpuType
from gpupod_rehearsal.runpod.http.context import account, demand, json_response, simulator
from gpupod_rehearsal.runpod.placement import Ask, availability
from gpupod_rehearsal.runpod.problems import bad_request, invalid, not_found

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.cloud import Cloud

_STOCK_FILTERS = ("count", "cloud", "countryCodes", "cudaVersions", "minCudaVersion")
_COUNTRY = re.compile(r"^[A-Z]{2}$")
_CUDA = re.compile(r"^\d+\.\d+$")
_MIN_CUDA = re.compile(r"^\d+(\.\d+)?$")
_PRODUCTS = ("POD", "CLUSTER", "SERVERLESS")


def routes() -> list[web.RouteDef]:
    """Routes of the catalog."""
    return [
        web.get("/v2/catalog/gpus", list_gpus, allow_head=False),
        web.get("/v2/catalog/gpus/{id}", get_gpu, allow_head=False),
        web.get("/v2/catalog/cpus", list_cpus, allow_head=False),
        web.get("/v2/catalog/cpus/{id}", get_cpu, allow_head=False),
        web.get("/v2/catalog/datacenters", list_data_centers, allow_head=False),
        web.get("/v2/catalog/datacenters/{id}", get_data_center, allow_head=False),
        web.get("/v2/catalog/templates", list_public_templates, allow_head=False),
    ]


async def list_gpus(request: web.Request) -> web.Response:
    """Every GPU type; those without a data center in the asked countries drop out."""
    demand(request, "catalog:read")
    cloud, ask = simulator(request).cloud, _ask(request)
    views = [_gpu(cloud, gpu, ask, request) for gpu in cloud.gpu_types.values()]
    if request.query.get("countryCodes"):
        views = [view for view in views if "dataCenters" in view]
    return json_response({"gpus": views})


async def get_gpu(request: web.Request) -> web.Response:
    """One GPU type, or 404."""
    demand(request, "catalog:read")
    cloud, ask = simulator(request).cloud, _ask(request)
    gpu = cloud.gpu_types.get(request.match_info["id"])
    if gpu is None:
        raise not_found()
    return json_response(_gpu(cloud, gpu, ask, request))


async def list_cpus(request: web.Request) -> web.Response:
    """Every CPU flavor."""
    demand(request, "catalog:read")
    return json_response({"cpus": [_cpu(flavor) for flavor in simulator(request).cloud.cpu_flavors.values()]})


async def get_cpu(request: web.Request) -> web.Response:
    """One CPU flavor, or 404."""
    demand(request, "catalog:read")
    flavor = simulator(request).cloud.cpu_flavors.get(request.match_info["id"])
    if flavor is None:
        raise not_found()
    return json_response(_cpu(flavor))


async def list_data_centers(request: web.Request) -> web.Response:
    """Data centers, filtered by `regions` and `globalNetwork`, with GPU stock where asked for."""
    demand(request, "catalog:read")
    cloud = simulator(request).cloud
    regions = _listed(request, "regions")
    network = request.query.get("globalNetwork")
    centers = [
        center
        for center in cloud.data_centers.values()
        if (not regions or center.region in regions)
        and (network is None or center.global_network == (network.lower() == "true"))
    ]
    return json_response({"dataCenters": [_center(cloud, center, request) for center in centers]})


async def get_data_center(request: web.Request) -> web.Response:
    """One data center, or 404."""
    demand(request, "catalog:read")
    cloud = simulator(request).cloud
    center = cloud.data_centers.get(request.match_info["id"])
    if center is None:
        raise not_found()
    return json_response(_center(cloud, center, request))


async def list_public_templates(request: web.Request) -> web.Response:
    """No public templates in this world."""
    demand(request, "catalog:read")
    return json_response({"templates": []})


def _ask(request: web.Request) -> Ask | None:
    """What stock is asked about; None without `include=AVAILABILITY`. Raises Problem 400, 422."""
    include, product = _listed(request, "include"), _listed(request, "product")
    if any(item != "AVAILABILITY" for item in include):
        raise invalid("include: value must be one of 'AVAILABILITY'")
    if any(item not in _PRODUCTS for item in product):
        raise invalid(f"product: value must be one of {', '.join(map(repr, _PRODUCTS))}")
    if bool(include) != bool(product):
        raise bad_request("include=AVAILABILITY and product must be given together")
    given = [name for name in _STOCK_FILTERS if name in request.query]
    if not include and given:
        raise bad_request(f"{given[0]} is only valid with include=AVAILABILITY")
    return _stock_filters(request) if include else None


def _stock_filters(request: web.Request) -> Ask:
    cuda, minimum = _listed(request, "cudaVersions"), request.query.get("minCudaVersion")
    if cuda and minimum:
        raise bad_request("cudaVersions and minCudaVersion are mutually exclusive")
    count, tier = request.query.get("count", "1"), request.query.get("cloud", "SECURE")
    checks = {
        "cudaVersions: must be major.minor": all(_CUDA.match(version) for version in cuda),
        "minCudaVersion: must be major or major.minor": minimum is None or _MIN_CUDA.match(minimum) is not None,
        "countryCodes: must be ISO 3166-1 alpha-2": all(map(_COUNTRY.match, _listed(request, "countryCodes"))),
        "count: minimum: want 1": count.isdecimal() and int(count) >= 1,
        "cloud: value must be one of 'SECURE', 'COMMUNITY'": tier in {"SECURE", "COMMUNITY"},
    }
    broken = [message for message, holds in checks.items() if not holds]
    if broken:
        raise invalid(*broken)
    return Ask(None, int(count), tier, (), tuple(cuda), minimum, account=account(request).id)


def _gpu(cloud: Cloud, gpu: GpuType, ask: Ask | None, request: web.Request) -> dict[str, object]:
    secure, community = gpu.secure_price, gpu.community_price
    view: dict[str, object] = {
        "id": gpu.id,
        "name": gpu.name,
        "pool": gpu.pool,
        "manufacturer": gpu.manufacturer,
        "memory": gpu.memory,
        "secure": secure is not None,
        "community": community is not None,
        "price": {"secure": float(secure or 0), "community": float(community or 0)},
        "maxCount": {
            "secure": gpu.max_count if secure is not None else 0,
            "community": gpu.max_count if community is not None else 0,
        },
    }
    if ask is None:
        return view
    countries = _listed(request, "countryCodes")
    centers = []
    for center in cloud.data_centers.values():
        if countries and center.country not in countries:
            continue
        stock = availability(cloud, _for(ask, gpu.id, (center.id,)))
        if stock != "NONE":
            centers.append({"id": center.id, "name": center.name, "availability": stock})
    view["availability"] = (
        availability(cloud, _for(ask, gpu.id, tuple(str(center["id"]) for center in centers) if countries else ()))
        if centers or not countries
        else "NONE"
    )
    if centers:
        view["dataCenters"] = centers
    versions = [
        {"version": version, "available": availability(cloud, _for(ask, gpu.id, (), version)) != "NONE"}
        for version in CUDA_VERSIONS
        if any(host.gpu_type == gpu.id and host.cuda == version for host in cloud.hosts.values())
    ]
    if versions:
        view["cudaVersions"] = versions
    return view


def _for(ask: Ask, gpu: str, centers: tuple[str, ...], cuda: str | None = None) -> Ask:
    allowed = (cuda,) if cuda is not None else ask.allowed_cuda
    return Ask(gpu, ask.count, ask.cloud, centers, allowed, None if cuda else ask.min_cuda)


def _cpu(flavor: CpuFlavor) -> dict[str, object]:
    price = float(flavor.price_per_vcpu)
    return {
        "id": flavor.id,
        "name": flavor.name,
        "group": flavor.group,
        "vcpu": {"min": flavor.min_vcpu, "max": flavor.max_vcpu},
        "ramGbPerVcpu": float(flavor.ram_per_vcpu),
        "price": {"securePerVcpu": price, "serverlessPerVcpu": price},
    }


def _center(cloud: Cloud, center: DataCenter, request: web.Request) -> dict[str, object]:
    view: dict[str, object] = {
        "id": center.id,
        "name": center.name,
        "region": center.region,
        "globalNetwork": center.global_network,
        "networkVolumeTypes": list(center.volume_types),
        "compliance": [],
    }
    if "GPU_AVAILABILITY" in _listed(request, "include"):
        view["gpuAvailability"] = [
            {
                "id": gpu.id,
                "name": gpu.name,
                "availability": availability(cloud, Ask(gpu.id, 1, "SECURE", (center.id,))),
            }
            for gpu in cloud.gpu_types.values()
            if any(host.data_center == center.id and host.gpu_type == gpu.id for host in cloud.hosts.values())
        ]
    return view


def _listed(request: web.Request, name: str) -> list[str]:
    return [item for item in request.query.get(name, "").split(",") if item]
