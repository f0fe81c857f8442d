"""What RunPod answers, read with patience: unknown fields are ignored, a missing or strange one is None.

Patience ends where a guess would cost money: a pod that cannot be told from another (no id), or whose owner cannot be
told (no `env`, which the contract always has), makes the answer incomplete. "Not shown" is never "not there".
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler, field_validator

from gpupod_operator.core.provider import GpuOffer, NetworkVolume, PortMapping, ProviderPod, ProviderState, Stamp

OWNER, NONCE = "GPUPOD_OWNER", "GPUPOD_NONCE"
# The vendor shows no runtime of these; where it still does, it is that of the last run.
_AT_REST = frozenset({ProviderState.EXITED, ProviderState.TERMINATED, ProviderState.ERROR})


class Malformed(ValueError):
    """An item that cannot be told; the message names no value of it."""


class _Tolerant(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _strange_is_none(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        """One field of tomorrow must not hide the pod that carries it."""
        try:
            return handler(value)
        except ValidationError:
            return None

    @classmethod
    def read(cls, item: object) -> Self:
        """The item, as far as it can be read. Raises Malformed when it is no object."""
        if not isinstance(item, dict):
            raise Malformed("an item of the answer is no object")
        return cls.model_validate(item)


_Item = TypeVar("_Item", bound=_Tolerant)


class _Gpu(_Tolerant):
    id: str | None = None
    count: int | None = None


class _SshEndpoint(_Tolerant):
    username: str | None = None


class _Ssh(_Tolerant):
    proxy: _SshEndpoint | None = None


class _Port(_Tolerant):
    private: int | None = None
    public: int | None = None
    ip: str | None = None
    type: str | None = None


class _Runtime(_Tolerant):
    uptime: Decimal | None = None
    gpus: list[Any] | None = None
    ports: list[Any] | None = None


class _Persistent(_Tolerant):
    size: int | None = None


class _NetworkMount(_Tolerant):
    volume_id: str | None = Field(default=None, alias="volumeId")


class _Mounts(_Tolerant):
    persistent: _Persistent | None = None
    network: list[Any] | None = None


class PodModel(_Tolerant):
    """The vendor's Pod. `env` is read for the two stamps and goes no further: it may hold secrets."""

    id: str | None = None
    name: str | None = None
    status: str | None = None
    image: str | None = None
    disk: int | None = None
    mounts: _Mounts | None = None
    ports: list[Any] | None = None
    gpu: _Gpu | None = None
    cloud: str | None = None
    data_center_id: str | None = Field(default=None, alias="dataCenterId")
    ssh: _Ssh | None = None
    cost: Decimal | None = None
    locked: bool | None = None
    runtime: _Runtime | None = None
    created_at: datetime | None = Field(default=None, alias="createdAt")
    started_at: datetime | None = Field(default=None, alias="startedAt")


def pod_of(item: object, *, stamp: Stamp | None = None) -> ProviderPod:
    """A pod as the core sees it. `stamp` is used where it is known anyway, because we have just sent it.

    Raises:
        Malformed: no id, or neither an environment nor `stamp`.
    """
    model = PodModel.read(item)
    if not model.id:
        raise Malformed("a pod in the answer has no id")
    state = _state(model.status)
    runtime = None if state in _AT_REST else model.runtime
    shown = runtime is not None and bool(runtime.model_fields_set)
    proxy = model.ssh.proxy if model.ssh is not None else None
    networks = _objects(_NetworkMount, model.mounts.network if model.mounts is not None else None)
    persistent = model.mounts.persistent if model.mounts is not None else None
    return ProviderPod(
        id=model.id,
        name=model.name or "",
        state=state,
        raw_state=model.status or "",
        stamp=stamp or _stamp(item, model.id),
        image=model.image,
        ports=tuple(port for port in model.ports or () if isinstance(port, str)),
        gpu_type_id=model.gpu.id if model.gpu is not None else None,
        gpu_count=model.gpu.count if model.gpu is not None else None,
        cost_per_hour=_money(model.cost),
        cloud=model.cloud,
        data_center=model.data_center_id,
        host_hint=_host_hint(proxy, model.id),
        placed=proxy is not None,
        has_runtime=shown,
        mappings=_mappings(runtime),
        gpus_visible=len(runtime.gpus) if runtime is not None and runtime.gpus is not None else None,
        container_disk_gb=model.disk,
        persistent_gb=persistent.size if persistent is not None else None,
        network_volume_id=networks[0].volume_id if networks else None,
        locked=bool(model.locked),
        created_at=_utc(model.created_at),
        started_at=_utc(model.started_at),
    )


class _Prices(_Tolerant):
    secure: Decimal | None = None
    community: Decimal | None = None


class _Counts(_Tolerant):
    secure: int | None = None
    community: int | None = None


class _GpuType(_Tolerant):
    id: str | None = None
    name: str | None = None
    memory: int | None = None
    secure: bool | None = None
    community: bool | None = None
    price: _Prices | None = None
    max_count: _Counts | None = Field(default=None, alias="maxCount")


def offer_of(item: object) -> GpuOffer:
    """One GPU type. Raises Malformed without an id: a hole in the catalog would make a good name a typo."""
    model = _GpuType.read(item)
    if not model.id:
        raise Malformed("a GPU type in the answer has no id")
    price, count = model.price or _Prices(), model.max_count or _Counts()
    # A tier that is not offered is priced 0.
    secure, community = _money(price.secure) or None, _money(price.community) or None
    return GpuOffer(
        id=model.id,
        name=model.name or model.id,
        memory_gb=model.memory,
        secure=model.secure if model.secure is not None else secure is not None,
        community=model.community if model.community is not None else community is not None,
        price_secure=secure,
        price_community=community,
        max_count_secure=count.secure,
        max_count_community=count.community,
    )


class _Volume(_Tolerant):
    id: str | None = None
    name: str | None = None
    size: int | None = None
    data_center: str | None = Field(default=None, alias="dataCenter")


def volume_of(item: object) -> NetworkVolume:
    """A network volume. Raises Malformed without an id or a data center: a pod is placed by it."""
    model = _Volume.read(item)
    if not model.id or not model.data_center:
        raise Malformed("a network volume in the answer has no id or no data center")
    return NetworkVolume(model.id, model.name or "", model.size or 0, model.data_center)


def _state(raw: str | None) -> ProviderState:
    try:
        return ProviderState((raw or "").upper())
    except ValueError:
        return ProviderState.UNKNOWN


def _stamp(item: object, pod_id: str) -> Stamp | None:
    """Whose pod it is. A pod of somebody else has an environment too, so a missing one tells nothing."""
    if not isinstance(item, dict) or "env" not in item or not isinstance(item["env"], dict | None):
        raise Malformed(f"pod {pod_id} is shown without its environment, so its owner cannot be told")
    env = item["env"] or {}
    owner, nonce = env.get(OWNER), env.get(NONCE)
    return Stamp(owner, nonce) if isinstance(owner, str) and isinstance(nonce, str) else None


def _host_hint(proxy: _SshEndpoint | None, pod_id: str) -> str | None:
    if proxy is None or proxy.username is None or not proxy.username.startswith(f"{pod_id}-"):
        return None
    return proxy.username.removeprefix(f"{pod_id}-") or None


def _mappings(runtime: _Runtime | None) -> tuple[PortMapping, ...]:
    if runtime is None:
        return ()
    return tuple(
        PortMapping(port.private, port.public, port.ip, port.type or "tcp")
        for port in _objects(_Port, runtime.ports)
        if port.private is not None
    )


def _objects(model: type[_Item], items: list[Any] | None) -> list[_Item]:
    """The readable entries of a list; a strange one must not hide its neighbours."""
    return [model.read(item) for item in items or () if isinstance(item, dict)]


def _money(value: Decimal | None) -> Decimal | None:
    return value if value is not None and value.is_finite() and value >= 0 else None


def _utc(at: datetime | None) -> datetime | None:
    """RunPod's times are UTC; one without a zone is taken as such."""
    if at is None:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
