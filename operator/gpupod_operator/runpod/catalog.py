"""What RunPod sells and stores: GPU types and network volumes. A hole in either is an error, not a smaller list."""

from __future__ import annotations

from decimal import Decimal

from pydantic import Field

from gpupod_operator.core.provider import GpuOffer, NetworkVolume
from gpupod_operator.runpod.tolerance import Malformed, Tolerant, money


class _Prices(Tolerant):
    secure: Decimal | None = None
    community: Decimal | None = None


class _Counts(Tolerant):
    secure: int | None = None
    community: int | None = None


class _GpuType(Tolerant):
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
    secure, community = money(price.secure) or None, money(price.community) or None
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


class _Volume(Tolerant):
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
