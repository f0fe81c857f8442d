"""`/v2/network-volumes`, and the lists of templates, registries and secrets."""

from __future__ import annotations

from aiohttp import web

from gpupod_rehearsal.runpod import contract
from gpupod_rehearsal.runpod.http.context import account, body_of, demand, json_response, simulator
from gpupod_rehearsal.runpod.problems import bad_request, not_found
from gpupod_rehearsal.runpod.world import NetworkVolume


def routes() -> list[web.RouteDef]:
    """Routes of storage and of the small lists."""
    return [
        web.get("/v2/network-volumes", list_volumes, allow_head=False),
        web.post("/v2/network-volumes", create_volume),
        web.get("/v2/network-volumes/{id}", get_volume, allow_head=False),
        web.patch("/v2/network-volumes/{id}", patch_volume),
        web.delete("/v2/network-volumes/{id}", delete_volume),
        web.get("/v2/templates", list_templates, allow_head=False),
        web.get("/v2/templates/{id}", get_template, allow_head=False),
        web.get("/v2/registries", list_registries, allow_head=False),
        web.get("/v2/secrets", list_secrets, allow_head=False),
    ]


async def list_volumes(request: web.Request) -> web.Response:
    """All volumes of the account."""
    demand(request, "network-volumes:read")
    volumes = [item.view() for item in simulator(request).cloud.volumes.values() if _mine(request, item)]
    return json_response({"networkVolumes": volumes})


async def create_volume(request: web.Request) -> web.Response:
    """201 with the volume, which bills from now on."""
    demand(request, "network-volumes:write")
    body = await body_of(request, contract.CREATE_VOLUME)
    cloud = simulator(request).cloud
    center = cloud.data_centers.get(body["dataCenter"])
    if center is None or not center.volume_types:
        raise bad_request("data center does not support network volumes")
    kind = body.get("type", center.volume_types[0])
    if kind not in center.volume_types:
        raise bad_request("data center does not support this volume type")
    volume = cloud.add_volume(account(request), body["name"], int(body["size"]), center.id, kind)
    return json_response(volume.view(), 201)


async def get_volume(request: web.Request) -> web.Response:
    """The volume, or 404."""
    demand(request, "network-volumes:read")
    return json_response(_volume(request).view())


async def patch_volume(request: web.Request) -> web.Response:
    """Rename or grow a volume."""
    demand(request, "network-volumes:write")
    body = await body_of(request, contract.UPDATE_VOLUME)
    volume = _volume(request)
    if body.get("size", volume.size) < volume.size:
        raise bad_request("network volume storage cannot be reduced")
    volume.name = body.get("name", volume.name)
    volume.size = int(body.get("size", volume.size))
    simulator(request).cloud.meter_volume(volume)
    return json_response(volume.view())


async def delete_volume(request: web.Request) -> web.Response:
    """204; refused while a pod is attached."""
    demand(request, "network-volumes:write")
    volume, cloud = _volume(request), simulator(request).cloud
    if any(pod.network is not None and pod.network["volumeId"] == volume.id for pod in cloud.living()):
        raise bad_request("network volume is attached to a pod")
    volume.deleted_at = cloud.now
    cloud.ledger.close(volume.id, cloud.now)
    return web.Response(status=204)


async def list_templates(request: web.Request) -> web.Response:
    """The account's templates."""
    demand(request, "templates:read")
    return json_response({"templates": account(request).templates})


async def get_template(request: web.Request) -> web.Response:
    """One template, or 404."""
    demand(request, "templates:read")
    for template in account(request).templates:
        if template["id"] == request.match_info["id"]:
            return json_response(template)
    raise not_found()


async def list_registries(request: web.Request) -> web.Response:
    """The account's registry credentials, names only."""
    demand(request, "registries:read")
    return json_response({"registries": account(request).registries})


async def list_secrets(request: web.Request) -> web.Response:
    """The account's secrets, names only; `name` filters."""
    demand(request, "secrets:read")
    wanted = request.query.get("name")
    secrets = [item for item in account(request).secrets if wanted is None or item.get("name") == wanted]
    return json_response({"secrets": secrets})


def _mine(request: web.Request, volume: NetworkVolume) -> bool:
    return volume.account == account(request).id and volume.deleted_at is None


def _volume(request: web.Request) -> NetworkVolume:
    volume = simulator(request).cloud.volumes.get(request.match_info["id"])
    if volume is None or not _mine(request, volume):
        raise not_found()
    return volume
