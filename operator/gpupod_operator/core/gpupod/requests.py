"""The body of a create call, without environment values."""

from __future__ import annotations

from gpupod_operator.core.gpupod.candidates import Choice
from gpupod_operator.core.gpupod.scope import Scope
from gpupod_operator.core.known import Known
from gpupod_operator.core.ownership import owner_stamp
from gpupod_operator.core.provider import CreateRequest, Stamp


def build_request(scope: Scope, choice: Choice, nonce: str) -> CreateRequest:
    """The create call's body without environment values. Count, ports and disk are always sent."""
    spec, identity = scope.spec, scope.identity
    container, placement = spec.container, spec.placement
    assert container.image is not None
    volume = spec.volume
    network = volume.network if volume is not None else None
    persistent = volume.persistent if volume is not None else None
    centers = tuple(choice.candidate.data_centers or ())
    if network is not None and isinstance(scope.facts.volume, Known) and scope.facts.volume.value is not None:
        centers = (scope.facts.volume.value.data_center,)
    return CreateRequest(
        # the vendor's own limit is not documented for v2; peers keep to 60
        name=f"{identity.name[:48]}-{nonce}",
        image=container.image,
        gpu_type_id=choice.offer.id,
        gpu_count=choice.candidate.count or 1,
        cloud=(choice.candidate.cloud or "Secure").upper(),
        data_centers=centers,
        disk_gb=container.disk_gb,
        ports=tuple(container.ports),
        stamp=Stamp(owner_stamp(identity.instance, identity.namespace, identity.name, identity.uid), nonce),
        entrypoint=tuple(container.entrypoint or ()),
        command=tuple(container.cmd or ()),
        registry=container.registry,
        persistent_gb=persistent.size_gb if persistent is not None else None,
        persistent_path=persistent.path if persistent is not None else None,
        network_volume_id=network.volume_id if network is not None else None,
        network_volume_path=network.path if network is not None else None,
        min_cuda_version=placement.min_cuda_version,
        min_ram_per_gpu_gb=placement.min_ram_per_gpu_gb,
        min_vcpu_per_gpu=placement.min_vcpu_per_gpu,
    )
