"""Where a pod lands: the scheduler of the simulated vendor, and what the catalog says about stock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpupod_rehearsal.runpod.faults import Subject
from gpupod_rehearsal.runpod.problems import NO_CAPACITY, bad_request
from gpupod_rehearsal.runpod.world import Host

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.cloud import Cloud


@dataclass(frozen=True, slots=True)
class Ask:
    """What a pod wants of its host. `gpu_type` None is a CPU pod; empty tuples do not restrict."""

    gpu_type: str | None
    count: int
    cloud: str
    data_centers: tuple[str, ...] = ()
    allowed_cuda: tuple[str, ...] = ()
    min_cuda: str | None = None
    min_ram_per_gpu: int = 0
    min_vcpu_per_gpu: int = 0
    account: str = ""
    name: str = ""


def place(cloud: Cloud, ask: Ask) -> Host:
    """The host that was used least recently among those that fit. Raises the vendor's capacity refusal.

    Community machines belong to no data center, so naming one leaves nothing: the live service does the same.
    """
    subject = Subject(
        pod_name=ask.name, account=ask.account, gpu=ask.gpu_type, data_center=next(iter(ask.data_centers), None)
    )
    rule = cloud.faults.fire("no-capacity", subject)
    if rule is not None:
        raise bad_request(rule.text("detail") or NO_CAPACITY)
    fitting = [host for host in candidates(cloud, ask) if not _blocked(cloud, host, ask)]
    if not fitting:
        raise bad_request(NO_CAPACITY)
    chosen = min(fitting, key=lambda host: (host.last_placed, host.id))
    cloud.placements += 1
    chosen.last_placed = cloud.placements
    return chosen


def candidates(cloud: Cloud, ask: Ask) -> Iterable[Host]:
    """Live hosts that fit and have the GPUs free."""
    free = cloud.all_free_gpus()
    for host in cloud.hosts.values():
        if not host.alive or host.cloud != ask.cloud:
            continue
        if ask.gpu_type is not None and host.gpu_type != ask.gpu_type:
            continue
        if ask.data_centers and host.data_center not in ask.data_centers:
            continue
        if not _cuda_fits(host, ask) or host.ram_per_gpu < ask.min_ram_per_gpu:
            continue
        if host.vcpu_per_gpu < ask.min_vcpu_per_gpu or free[host.id] < ask.count:
            continue
        yield host


def availability(cloud: Cloud, ask: Ask) -> str:
    """The catalog's stock word. A hint: faults and races refuse what it promises."""
    stock = cloud.all_free_gpus()
    free = sum(stock[host.id] for host in candidates(cloud, ask))
    if free <= 0:
        return "NONE"
    return "LOW" if free < 4 else "MEDIUM" if free < 12 else "HIGH"


def cuda_number(version: str) -> tuple[int, ...]:
    """A CUDA version for comparison: 12.11 is above 12.2."""
    return tuple(int(part) for part in version.split("."))


def _blocked(cloud: Cloud, host: Host, ask: Ask) -> bool:
    subject = Subject(host=host.id, data_center=host.data_center, account=ask.account, gpu=host.gpu_type)
    now = cloud.now
    return any(
        rule.kind.name == "no-capacity"
        and rule.active(now)
        and rule.left != 0
        and (rule.target.host is not None or rule.target.data_center is not None)
        and rule.target.matches(subject)
        for rule in cloud.faults.rules
    )


def _cuda_fits(host: Host, ask: Ask) -> bool:
    if ask.allowed_cuda:
        return host.cuda in ask.allowed_cuda
    if ask.min_cuda is not None:
        return host.cuda is not None and cuda_number(host.cuda) >= cuda_number(ask.min_cuda)
    return True
