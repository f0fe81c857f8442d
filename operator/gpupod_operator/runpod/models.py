"""A pod as RunPod shows it, read with patience.

Patience ends where a guess would cost money: a pod that cannot be told from another (no id), or whose owner cannot be
told (no `env`, which the contract always has), makes the answer incomplete. "Not shown" is never "not there".
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pydantic import Field

from gpupod_operator.core.provider import PortMapping, ProviderPod, ProviderState, Stamp
from gpupod_operator.runpod.tolerance import Malformed, Tolerant, money, objects

OWNER, NONCE = "GPUPOD_OWNER", "GPUPOD_NONCE"
# The vendor shows no runtime of these; where it still does, it is that of the last run.
_AT_REST = frozenset({ProviderState.EXITED, ProviderState.TERMINATED, ProviderState.ERROR})


class _Gpu(Tolerant):
    id: str | None = None
    count: int | None = None


class _SshEndpoint(Tolerant):
    username: str | None = None


class _Ssh(Tolerant):
    proxy: _SshEndpoint | None = None


class _Port(Tolerant):
    private: int | None = None
    public: int | None = None
    ip: str | None = None
    type: str | None = None


class _Runtime(Tolerant):
    uptime: Decimal | None = None
    gpus: list[Any] | None = None
    ports: list[Any] | None = None


class _Persistent(Tolerant):
    size: int | None = None


class _NetworkMount(Tolerant):
    volume_id: str | None = Field(default=None, alias="volumeId")


class _Mounts(Tolerant):
    persistent: _Persistent | None = None
    network: list[Any] | None = None


class PodModel(Tolerant):
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
    networks = objects(_NetworkMount, model.mounts.network if model.mounts is not None else None)
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
        cost_per_hour=money(model.cost),
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
        for port in objects(_Port, runtime.ports)
        if port.private is not None
    )


def _utc(at: datetime | None) -> datetime | None:
    """RunPod's times are UTC; one without a zone is taken as such."""
    if at is None:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
