"""Which candidate is asked next: typed against the live catalog, capped by price, in the order of the spec."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from decimal import Decimal

from gpupod_operator.api.gpupod_spec import Candidate, GpuPodSpec
from gpupod_operator.api.gpupod_status import AttemptCandidate
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.provider import GpuOffer

DISK_GB_MONTH = Decimal("0.10")
"""USD per GB and month of container disk while running (RunPod's price list); a month is 730 hours."""
HOURS_PER_MONTH = Decimal(730)


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidate to ask, its catalog entry, and the words that explain why it is this one."""

    index: int
    candidate: AttemptCandidate
    offer: GpuOffer
    why: str
    price: Decimal | None = None
    """USD per hour of the whole pod as the catalog lists it."""


@dataclass(frozen=True, slots=True)
class NoChoice:
    """Nothing to ask now, and the words that say why."""

    reason: Reason
    message: str


def choose(spec: GpuPodSpec, offers: tuple[GpuOffer, ...], *, tried: tuple[int, ...]) -> Choice | NoChoice:
    """The first candidate that was not tried in this round and is not over a cap.

    Every candidate is resolved before any is asked, so a typo in the third is found before the first is rented.
    """
    resolved: list[tuple[int, Candidate, GpuOffer]] = []
    for index, candidate in enumerate(spec.placement.candidates):
        offer = resolve(candidate.gpu_type, offers)
        if isinstance(offer, NoChoice):
            return offer
        resolved.append((index, candidate, offer))
    over: list[str] = []
    for index, candidate, offer in resolved:
        if index in tried:
            continue
        cap, price = price_cap(spec, candidate), list_price(candidate, offer, spec.container.disk_gb)
        if cap is not None and price is not None and price > cap:
            over.append(f"{candidate.gpu_type} lists at ${price:f}/h, over the cap of ${cap:f}/h")
            continue
        where = f" in {', '.join(candidate.data_centers)}" if candidate.data_centers else ""
        cost = f", listed at ${price:f}/h" if price is not None else ""
        return Choice(
            index,
            AttemptCandidate(
                index=index,
                gpu_type=candidate.gpu_type,
                gpu_type_id=offer.id,
                count=candidate.count,
                cloud=candidate.cloud,
                data_centers=candidate.data_centers or None,
                max_price_per_hour=cap,
            ),
            offer,
            f"candidate {index + 1} of {len(resolved)}: {candidate.count}x {candidate.gpu_type} "
            f"({candidate.cloud}){where}{cost}",
            price,
        )
    if over and len(over) == len(resolved):
        return NoChoice(Reason.PRICE_OVER_CAP, "; ".join(over) + ". Raise maxPricePerHour or name cheaper candidates")
    return NoChoice(Reason.NO_CAPACITY, "every candidate was asked in this round")


def resolve(gpu_type: str, offers: tuple[GpuOffer, ...]) -> GpuOffer | NoChoice:
    """A short name or exact id against the catalog; a typo gets the nearest names (the vendor answers it with a
    misleading "no capacity").
    """
    wanted = gpu_type.casefold()
    for offer in offers:
        if wanted in (offer.id.casefold(), offer.name.casefold()):
            return offer
    shorts = [o for o in offers if wanted in _short_names(o)]
    if len(shorts) == 1:
        return shorts[0]
    names = sorted({o.name for o in offers} | {o.id for o in offers})
    near = difflib.get_close_matches(gpu_type, names, n=3, cutoff=0.4) or [o.name for o in shorts[:3]] or names[:5]
    what = "is ambiguous" if shorts else "is not in RunPod's catalog"
    return NoChoice(Reason.UNKNOWN_GPU_TYPE, f"GPU type {gpu_type!r} {what}; did you mean {', '.join(near)}?")


def _short_names(offer: GpuOffer) -> set[str]:
    """`H100` for `H100 SXM` would be a guess where several H100 exist; only a unique first word counts."""
    words = offer.name.casefold().split()
    return {words[0]} if words else set()


def price_cap(spec: GpuPodSpec, candidate: Candidate | AttemptCandidate) -> Decimal | None:
    """The lower of the candidate's and the object's cap, USD per hour for the whole pod."""
    caps = [c for c in (candidate.max_price_per_hour, spec.spend.max_price_per_hour) if c is not None]
    return min(caps) if caps else None


def list_price(candidate: Candidate, offer: GpuOffer, disk_gb: int) -> Decimal | None:
    """Catalog price for the whole pod with its container disk; the answer's own price is checked again."""
    single = offer.price_community if candidate.cloud == "Community" else offer.price_secure
    if single is None:
        return None
    return (single * candidate.count + DISK_GB_MONTH * disk_gb / HOURS_PER_MONTH).quantize(Decimal("0.0001"))
