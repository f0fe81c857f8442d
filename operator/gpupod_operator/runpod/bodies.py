"""What we send, exactly: RunPod refuses a body with a property that it does not know (422), so nothing is guessed.

What is not wanted is left out: an empty entrypoint would override the image's own.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from gpupod_operator.core.provider import CreateRequest, PatchRequest


class _Exact(BaseModel):
    # A value of the environment may be a secret: an error about a body shows none.
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True
    )

    def wire(self) -> dict[str, Any]:
        """The JSON document, without what is not set."""
        return self.model_dump(by_alias=True, exclude_none=True)


class GpuAsk(_Exact):
    """One GPU type: RunPod does not fall back to another."""

    id: str
    count: int = Field(ge=1)
    min_cuda_version: str | None = None
    min_ram_per_gpu: int | None = None
    min_vcpu_count_per_gpu: int | None = None


class PersistentMount(_Exact):
    """A volume on the host, `size` in GB; it cannot move and dies with the pod."""

    size: int
    path: str


class NetworkMount(_Exact):
    """A volume of its data center; it outlives the pod."""

    volume_id: str
    path: str


class Mounts(_Exact):
    """At most one of the two; a network mount is a list of one."""

    persistent: PersistentMount | None = None
    network: list[NetworkMount] | None = None


class CreateBody(_Exact):
    """`disk`, `ports` and `gpu.count` are always sent: the vendor's defaults end in a misleading "no capacity"."""

    name: str = Field(min_length=1)
    image: str = Field(min_length=1)
    gpu: GpuAsk
    cloud: str
    disk: int = Field(ge=1)
    ports: list[str]
    env: dict[str, str]
    data_center_ids: list[str] | None = None
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    registry: str | None = None
    mounts: Mounts | None = None


class PatchBody(_Exact):
    """`env` replaces the pod's whole environment."""

    name: str | None = None
    image: str | None = None
    ports: list[str] | None = None
    disk: int | None = None
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    registry: str | None = None
    env: dict[str, str] | None = None


class ActionBody(_Exact):
    """`start` or `stop`."""

    action: str


def create_body(request: CreateRequest, env: dict[str, str]) -> CreateBody:
    """The body of a create, with the environment as given."""
    return CreateBody(
        name=request.name,
        image=request.image,
        gpu=GpuAsk(
            id=request.gpu_type_id,
            count=request.gpu_count,
            min_cuda_version=request.min_cuda_version,
            min_ram_per_gpu=request.min_ram_per_gpu_gb,
            min_vcpu_count_per_gpu=request.min_vcpu_per_gpu,
        ),
        cloud=request.cloud,
        disk=request.disk_gb,
        ports=list(request.ports),
        env=env,
        data_center_ids=list(request.data_centers) or None,
        entrypoint=list(request.entrypoint) or None,
        cmd=list(request.command) or None,
        registry=request.registry,
        mounts=_mounts(request),
    )


def patch_body(change: PatchRequest, env: dict[str, str] | None) -> PatchBody:
    """The body of a change: only what the change names."""
    return PatchBody(
        name=change.name,
        image=change.image,
        ports=None if change.ports is None else list(change.ports),
        disk=change.disk_gb,
        entrypoint=None if change.entrypoint is None else list(change.entrypoint),
        cmd=None if change.command is None else list(change.command),
        registry=change.registry,
        env=env,
    )


def _mounts(request: CreateRequest) -> Mounts | None:
    if request.persistent_gb is not None:
        return Mounts(persistent=PersistentMount(size=request.persistent_gb, path=request.persistent_path or ""))
    if request.network_volume_id is not None:
        mount = NetworkMount(volume_id=request.network_volume_id, path=request.network_volume_path or "")
        return Mounts(network=[mount])
    return None
