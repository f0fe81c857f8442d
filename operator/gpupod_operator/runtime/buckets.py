"""Every pod that may cost money, in one bucket each. Pure; unknown is a bucket of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from gpupod_operator.api.conditions import is_true
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.phases import AttemptIntent, WorkloadState
from gpupod_operator.core.provider import ProviderPod, ProviderState

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
    account: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """What one object says of its pod, in little room: it is kept for each of thousands."""

    name: str
    """`namespace/name`."""
    uid: str
    account: str | None
    pod_id: str | None
    nonce: str | None
    """Of a create that is under way or unanswered."""
    state: ProviderState
    per_hour: Decimal | None
    fault: str | None
    fault_since: datetime | None
    idle: str | None
    """Why a Ready pod counts as idle: its workload's state."""
    phase: str
    released: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cloud:
    """A complete list of one account. `instance` is the operator instance whose stamps are ours.

    `released` are ids that objects gave up by their deletion policy and that are no leaks.
    """

    account: str
    pods: Sequence[ProviderPod]
    instance: str
    released: frozenset[str] = frozenset()


def held(namespace: str, name: str, uid: str, status: GpuPodStatus) -> Held | None:
    """None for an object that has neither a pod nor an open create."""
    attempt, episode, cost = status.attempt, status.episode, status.cost
    if attempt is None or (attempt.pod_id is None and attempt.intent is not AttemptIntent.CREATE):
        return None
    workload = status.workload.state if status.workload is not None else None
    idle = is_true(status.conditions, "Ready") and workload not in AT_WORK
    return Held(
        name=f"{namespace}/{name}",
        uid=uid,
        account=status.account.id if status.account is not None else None,
        pod_id=attempt.pod_id,
        nonce=attempt.nonce if attempt.pod_id is None else None,
        state=_state(status),
        per_hour=cost.per_hour if cost is not None else None,
        fault=episode.kind if episode is not None else None,
        fault_since=episode.first_seen if episode is not None else None,
        idle=str(workload or "none") if idle else None,
        phase=str(status.phase or ""),
        released=tuple(status.released or ()),
    )


def sort_out(objects: Iterable[Held], clouds: Sequence[Cloud], now: datetime) -> list[Entry]:
    """All pods that the objects record, and all others of the accounts whose lists are given."""
    objects = list(objects)
    lists = {cloud.account: {p.id: p for p in cloud.pods} for cloud in clouds}
    entries = [_managed(one, lists, now) for one in objects]
    recorded = {entry.pod_id for entry in entries}
    owners = {one.uid: one for one in objects}
    given = frozenset(pod for one in objects for pod in one.released)
    for cloud in clouds:
        entries += [
            _unrecorded(p, owners, given | cloud.released, cloud, now)
            for p in cloud.pods
            if p.live and p.id not in recorded
        ]
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


def _managed(one: Held, lists: Mapping[str, Mapping[str, ProviderPod]], now: datetime) -> Entry:
    account = one.account or ""
    if one.pod_id is None:
        words = f"a create is under way or unanswered (nonce {one.nonce})"
        return Entry(Bucket.UNKNOWN, "?", one.name, None, words, account)
    listed = next((pods[one.pod_id] for pods in lists.values() if one.pod_id in pods), None)
    if listed is None and one.account in lists:
        words = "recorded, but not in the account's list"
        return Entry(Bucket.UNKNOWN, one.pod_id, one.name, one.per_hour, words, account)
    state = listed.state if listed is not None else one.state
    price = listed.cost_per_hour if listed is not None and state is not ProviderState.EXITED else one.per_hour
    bucket, note = _bucket(one, state, now)
    return Entry(bucket, one.pod_id, one.name, price, note, account)


def _bucket(one: Held, state: ProviderState, now: datetime) -> tuple[Bucket, str]:
    if state is ProviderState.EXITED:
        return Bucket.STOPPED, "its disks bill; host volumes at the stopped price"
    if state in (ProviderState.UNKNOWN, ProviderState.TERMINATED):
        return Bucket.UNKNOWN, f"RunPod's status is {state}"
    if one.fault_since is not None and now - one.fault_since > UNREACHABLE_AFTER:
        return Bucket.UNREACHABLE, f"{one.fault} since {one.fault_since:%Y-%m-%dT%H:%M:%SZ}"
    if one.idle is not None:
        return Bucket.IDLE, f"ready, workload {one.idle}"
    return Bucket.ACTIVE, one.phase


def _unrecorded(
    found: ProviderPod, owners: Mapping[str, Held], released: frozenset[str], cloud: Cloud, now: datetime
) -> Entry:
    def entry(bucket: Bucket, note: str) -> Entry:
        return Entry(bucket, found.id, found.name, found.cost_per_hour, note, cloud.account)

    stamp = found.stamp
    if stamp is None:
        return entry(Bucket.FOREIGN, "no stamp of this operator")
    if stamp.instance != cloud.instance:
        return entry(Bucket.FOREIGN, f"stamp of another operator instance: {stamp.owner}")
    if found.id in released:
        return entry(Bucket.FOREIGN, "released by deletionPolicy")
    if stamp.uid in owners:
        return entry(Bucket.UNKNOWN, f"stamp of {owners[stamp.uid].name}, which does not record it (yet)")
    if found.created_at is not None and now - found.created_at <= ORPHAN_AFTER:
        return entry(Bucket.UNKNOWN, f"young, and no GpuPod has its stamp {stamp.owner}")
    return entry(Bucket.ORPHAN, f"no GpuPod has its stamp {stamp.owner}")


def _state(status: GpuPodStatus) -> ProviderState:
    word = status.pod.provider_status if status.pod is not None else None
    try:
        return ProviderState(word or "UNKNOWN")
    except ValueError:
        return ProviderState.UNKNOWN
