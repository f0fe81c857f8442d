"""Every pod that may cost money, in one bucket each. Pure; unknown is a bucket of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from gpupod_operator.api.conditions import is_true
from gpupod_operator.api.phases import AttemptIntent, WorkloadState
from gpupod_operator.core.provider import ProviderPod, ProviderState
from gpupod_operator.render.rows import PodObject

UNREACHABLE_AFTER = timedelta(minutes=30)
"""Age of the fault episode, never of the pod."""
ORPHAN_AFTER = timedelta(minutes=5)
"""A younger pod may belong to an object that the API server has not shown yet."""

AT_WORK = frozenset({WorkloadState.STARTING, WorkloadState.RUNNING, WorkloadState.STALLED, WorkloadState.UNKNOWN})


class Bucket(StrEnum):
    """Where a pod's money goes."""

    ACTIVE = "active"
    UNREACHABLE = "unreachable"
    IDLE = "idle"
    STOPPED = "stopped"
    ORPHAN = "orphan"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"


LEAKS = frozenset({Bucket.UNREACHABLE, Bucket.ORPHAN})
"""Money for nothing that nobody asked for. A pod of somebody else is not ours to judge."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One pod. `per_hour` in USD, None where nobody knows."""

    bucket: Bucket
    pod_id: str
    name: str
    per_hour: Decimal | None
    note: str


@dataclass(frozen=True, slots=True)
class Cloud:
    """A complete list of one account. `instance` is the operator instance whose stamps are ours."""

    account: str
    pods: Sequence[ProviderPod]
    instance: str


def sort_out(objects: Sequence[PodObject], cloud: Cloud | None, now: datetime) -> list[Entry]:
    """All pods that the objects record, and all others of the account if there is a list."""
    entries = [entry for pod in objects for entry in _managed(pod, cloud, now)]
    if cloud is not None:
        recorded = {entry.pod_id for entry in entries}
        entries += [_unrecorded(p, objects, cloud, now) for p in cloud.pods if p.live and p.id not in recorded]
    order = list(Bucket)
    return sorted(entries, key=lambda entry: (order.index(entry.bucket), entry.name, entry.pod_id))


def per_bucket(entries: Sequence[Entry]) -> list[tuple[Bucket, int, Decimal, int]]:
    """Bucket, pods, USD per hour of those whose price is known, and how many have none."""
    table = []
    for bucket in Bucket:
        inside = [entry for entry in entries if entry.bucket is bucket]
        known = [entry.per_hour for entry in inside if entry.per_hour is not None]
        table.append((bucket, len(inside), sum(known, Decimal(0)), len(inside) - len(known)))
    return table


def _managed(pod: PodObject, cloud: Cloud | None, now: datetime) -> Iterator[Entry]:
    status, name = pod.status, f"{pod.namespace}/{pod.name}"
    attempt = status.attempt
    if attempt is None:
        return
    if attempt.pod_id is None:
        if attempt.intent is AttemptIntent.CREATE:
            yield Entry(Bucket.UNKNOWN, "?", name, None, f"a create is under way or unanswered (nonce {attempt.nonce})")
        return
    listed = _listed(pod, cloud)
    if listed is None and cloud is not None and _same_account(pod, cloud):
        yield Entry(
            Bucket.UNKNOWN, attempt.pod_id, name, _recorded_price(pod), "recorded, but not in the account's list"
        )
        return
    state = listed.state if listed is not None else _state(pod)
    price = listed.cost_per_hour if listed is not None and state is not ProviderState.EXITED else _recorded_price(pod)
    bucket, note = _bucket(pod, state, now)
    yield Entry(bucket, attempt.pod_id, name, price, note)


def _bucket(pod: PodObject, state: ProviderState, now: datetime) -> tuple[Bucket, str]:
    status = pod.status
    if state is ProviderState.EXITED:
        return Bucket.STOPPED, "its disks bill; host volumes at the stopped price"
    if state in (ProviderState.UNKNOWN, ProviderState.TERMINATED):
        return Bucket.UNKNOWN, f"RunPod's status is {state}"
    episode = status.episode
    if episode is not None and episode.first_seen is not None and now - episode.first_seen > UNREACHABLE_AFTER:
        return Bucket.UNREACHABLE, f"{episode.kind} since {episode.first_seen:%Y-%m-%dT%H:%M:%SZ}"
    workload = status.workload.state if status.workload is not None else None
    if is_true(status.conditions, "Ready") and workload not in AT_WORK:
        return Bucket.IDLE, f"ready, workload {workload or 'none'}"
    return Bucket.ACTIVE, str(status.phase or "")


def _unrecorded(found: ProviderPod, objects: Sequence[PodObject], cloud: Cloud, now: datetime) -> Entry:
    def entry(bucket: Bucket, note: str) -> Entry:
        return Entry(bucket, found.id, found.name, found.cost_per_hour, note)

    stamp = found.stamp
    if stamp is None:
        return entry(Bucket.FOREIGN, "no stamp of this operator")
    if stamp.instance != cloud.instance:
        return entry(Bucket.FOREIGN, f"stamp of another operator instance: {stamp.owner}")
    if any(found.id in (pod.status.released or ()) for pod in objects):
        return entry(Bucket.FOREIGN, "released by deletionPolicy")
    owner = next((pod for pod in objects if pod.uid == stamp.uid), None)
    if owner is not None:
        return entry(Bucket.UNKNOWN, f"stamp of {owner.namespace}/{owner.name}, which does not record it (yet)")
    if found.created_at is not None and now - found.created_at <= ORPHAN_AFTER:
        return entry(Bucket.UNKNOWN, f"young, and no GpuPod has its stamp {stamp.owner}")
    return entry(Bucket.ORPHAN, f"no GpuPod has its stamp {stamp.owner}")


def _listed(pod: PodObject, cloud: Cloud | None) -> ProviderPod | None:
    pod_id = pod.status.attempt.pod_id if pod.status.attempt is not None else None
    return next((p for p in cloud.pods if p.id == pod_id), None) if cloud is not None else None


def _same_account(pod: PodObject, cloud: Cloud) -> bool:
    return pod.status.account is not None and pod.status.account.id == cloud.account


def _state(pod: PodObject) -> ProviderState:
    word = pod.status.pod.provider_status if pod.status.pod is not None else None
    try:
        return ProviderState(word or "UNKNOWN")
    except ValueError:
        return ProviderState.UNKNOWN


def _recorded_price(pod: PodObject) -> Decimal | None:
    cost = pod.status.cost
    return cost.per_hour if cost is not None else None
