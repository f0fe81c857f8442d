"""`POST /v2/pods`: the rules a valid body can still break, and the pod that comes out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gpupod_rehearsal.runpod import lifecycle
from gpupod_rehearsal.runpod.placement import Ask, place
from gpupod_rehearsal.runpod.pod import ContainerConfig, SimPod
from gpupod_rehearsal.runpod.problems import LOW_BALANCE, NO_CAPACITY, SPEND_LIMIT, Problem, bad_request, not_found
from gpupod_rehearsal.runpod.world import Account

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.cloud import Cloud

Body = Mapping[str, Any]

_PORT = re.compile(r"^(\d{1,5})/(http|tcp)$")
_TEMPLATE_FIELDS = ("image", "args", "entrypoint", "cmd", "disk", "ports", "registry", "startSsh", "startJupyter")


def create(cloud: Cloud, account: Account, body: Body) -> SimPod:
    """Make a pod for a body that fits the contract. Raises Problem 400, 402 or 404."""
    body = with_template(account, body)
    check_ports(body.get("ports", []))
    _check_compute(body)
    mounts = body.get("mounts") or {}
    _check_mounts(cloud, account, body, mounts)
    ask = _ask(cloud, account, body, mounts)
    price = _price(cloud, ask, body)
    _check_money(cloud, account, price)
    host = place(cloud, ask)
    pod = SimPod(
        id=cloud.new_id(),
        account=account.id,
        name=body["name"],
        container=container_of(body, account),
        cloud=ask.cloud,
        created_at=cloud.now,
        price=price,
        host=host.id,
        data_center=host.data_center or None,
        gpu_type=ask.gpu_type,
        gpu_count=ask.count if ask.gpu_type else 0,
        gpus_shown=ask.count if ask.gpu_type else 0,
        cpu_flavor=body.get("cpu", {}).get("id"),
        vcpus=body["cpu"]["vcpuCount"] if "cpu" in body else host.vcpu_per_gpu * ask.count,
        memory=_memory(cloud, body, host.ram_per_gpu, ask.count),
        cuda=host.cuda if ask.gpu_type else None,
        persistent=dict(mounts["persistent"]) if "persistent" in mounts else None,
        network=dict(mounts["network"][0]) if mounts.get("network") else None,
        global_networking=bool(body.get("globalNetworking")),
    )
    cloud.pods[pod.id] = pod
    lifecycle.launch(cloud, pod)
    return pod


def with_template(account: Account, body: Body) -> Body:
    """The body over its template's settings: body fields win, env is merged per key. Raises Problem 404."""
    template_id = body.get("templateId")
    if template_id is None:
        return body
    template: Any = next((item for item in account.templates if item["id"] == template_id), None)
    if template is None:
        raise not_found("template not found")
    if template.get("serverless"):
        raise Problem(422, "Request validation failed.", ("$.templateId: is a serverless template",))
    merged = {name: template[name] for name in _TEMPLATE_FIELDS if name in template}
    merged |= {name: value for name, value in body.items() if name != "templateId"}
    merged["env"] = {**template.get("env", {}), **body.get("env", {})}
    if "mounts" not in merged and "cpu" not in body and template.get("mounts"):
        merged["mounts"] = template["mounts"]
    return merged


def check_ports(ports: list[str]) -> None:
    """Refuse malformed ports, udp, and more than ten http ports with 400."""
    for port in ports:
        match = _PORT.match(port)
        if match is None or int(match[1]) == 0:
            raise bad_request(f"invalid port {port!r}: expected <port>/http or <port>/tcp")
    if sum(port.endswith("/http") for port in ports) > 10:
        raise bad_request("at most 10 http ports are allowed")


def container_of(body: Body, account: Account) -> ContainerConfig:
    """The container part of a create body, with what the provisioner injects."""
    env = dict(body.get("env", {}))
    if body.get("startSsh") and account.ssh_keys:
        env.setdefault("PUBLIC_KEY", "\n".join(account.ssh_keys))
    if body.get("startJupyter"):
        env.setdefault("JUPYTER_PASSWORD", "rehearsal")
    return ContainerConfig(
        image=body["image"],
        args=body.get("args", ""),
        entrypoint=list(body.get("entrypoint", [])),
        cmd=list(body.get("cmd", [])),
        disk=int(body.get("disk", 50)),
        ports=list(body.get("ports", [])),
        env=env,
        registry=body.get("registry"),
    )


def _check_compute(body: Body) -> None:
    if ("gpu" in body) == ("cpu" in body):
        raise bad_request("exactly one of gpu or cpu must be set")
    gpu = body.get("gpu", {})
    if gpu.get("allowedCudaVersions") and "minCudaVersion" in gpu:
        raise bad_request("allowedCudaVersions and minCudaVersion are mutually exclusive")
    vcpus = int(body["cpu"]["vcpuCount"]) if "cpu" in body else 2
    if vcpus & (vcpus - 1):
        raise bad_request("vcpuCount must be a power of two")
    if "image" not in body:
        raise bad_request("image is required")


def _check_mounts(cloud: Cloud, account: Account, body: Body, mounts: Body) -> None:
    if "persistent" in mounts and "network" in mounts:
        raise bad_request("mounts.persistent and mounts.network are mutually exclusive")
    if "persistent" in mounts and "cpu" in body:
        raise bad_request("mounts.persistent is not supported on CPU pods")
    for mount in mounts.get("network", []):
        volume = cloud.volumes.get(mount["volumeId"])
        if volume is None or volume.account != account.id or volume.deleted_at is not None:
            raise bad_request("network volume not found")
        if body.get("cloud", "SECURE") != "SECURE":
            raise bad_request("network volumes are only available on SECURE cloud")
        if body.get("dataCenterIds") and volume.data_center not in body["dataCenterIds"]:
            raise bad_request("network volume is not in the requested data center")


def _ask(cloud: Cloud, account: Account, body: Body, mounts: Body) -> Ask:
    gpu = body.get("gpu")
    centers = tuple(body.get("dataCenterIds", ()))
    for mount in mounts.get("network", []):
        centers = (cloud.volumes[mount["volumeId"]].data_center,)
    if gpu is None:
        if body["cpu"]["id"] not in cloud.cpu_flavors:
            raise bad_request(NO_CAPACITY)
        return Ask(None, 0, body.get("cloud", "SECURE"), centers, account=account.id, name=body["name"])
    if "count" not in gpu and cloud.omitted_count_is_no_capacity:
        raise bad_request(NO_CAPACITY)
    if gpu["id"] not in cloud.gpu_types:
        raise bad_request(f"gpu type {gpu['id']!r} not found")
    return Ask(
        gpu["id"],
        int(gpu.get("count", 1)),
        body.get("cloud", "SECURE"),
        centers,
        tuple(gpu.get("allowedCudaVersions", ())),
        gpu.get("minCudaVersion"),
        int(gpu.get("minRamPerGpu", 0)),
        int(gpu.get("minVcpuCountPerGpu", 0)),
        account.id,
        body["name"],
    )


def _price(cloud: Cloud, ask: Ask, body: Body) -> Decimal:
    if ask.gpu_type is None:
        cpu = body["cpu"]
        return cloud.cpu_flavors[cpu["id"]].price_per_vcpu * int(cpu["vcpuCount"])
    kind = cloud.gpu_types[ask.gpu_type]
    single = kind.secure_price if ask.cloud == "SECURE" else kind.community_price
    if single is None:
        raise bad_request(NO_CAPACITY)
    return single * ask.count * _price_factor(cloud, ask)


def _price_factor(cloud: Cloud, ask: Ask) -> Decimal:
    for rule in cloud.faults.rules:
        if rule.kind.name == "price-change" and rule.active(cloud.now) and rule.target.gpu in {None, ask.gpu_type}:
            return Decimal(str(rule.params["factor"]))
    return Decimal(1)


def _check_money(cloud: Cloud, account: Account, price: Decimal) -> None:
    if account.billing_mode == "PREPAID" and cloud.balance(account) < price:
        raise Problem(402, LOW_BALANCE)
    if cloud.ledger.running_compute(account.id) + price > account.spend_limit:
        raise Problem(402, SPEND_LIMIT)


def _memory(cloud: Cloud, body: Body, ram_per_gpu: int, count: int) -> int:
    if "cpu" in body:
        flavor = cloud.cpu_flavors[body["cpu"]["id"]]
        return max(1, int(flavor.ram_per_vcpu * int(body["cpu"]["vcpuCount"])))
    return ram_per_gpu * count
