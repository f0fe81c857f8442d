"""What the operator knows about one GPU pod. Everything is optional: an old or empty status reads as "not known".

Times are transition times and nothing ticks: an unchanged world gives an equal status.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gpupod_operator.api.attempt import Attempt, AttemptCandidate, Backoff, Refusal, RefusedAct
from gpupod_operator.api.base import ApiModel, Text, at_most, newest
from gpupod_operator.api.conditions import Condition
from gpupod_operator.api.money import Money
from gpupod_operator.api.phases import AttemptCause, AttemptIntent, EndedAct, MigrationStep, Phase, WorkloadState
from gpupod_operator.api.policies import Readiness
from gpupod_operator.api.times import Time


class AccountStatus(ApiModel):
    """The account under which the pod was created."""

    id: str | None = None
    key_fingerprint: str | None = None


class PodStatus(ApiModel):
    """The pod as the provider last showed it. `cost_per_hour` in USD; `provider_status` is the vendor's own word."""

    id: str | None = None
    name: Text | None = None
    gpu_summary: Text | None = None
    gpu_type: Text | None = None
    count: int | None = None
    data_center: Text | None = None
    host_hint: Text | None = None
    cost_per_hour: Money | None = None
    started_at: Time | None = None
    provider_status: Text | None = None
    ports: Annotated[tuple[Text, ...] | None, at_most(32)] = None


class EndpointStatus(ApiModel):
    """Where to log in. The host key is pinned per (pod id, start)."""

    address: str | None = None
    host: str | None = None
    port: int | None = None
    host_key: str | None = None
    since: Time | None = None
    pod_id: str | None = None
    started_at: Time | None = None
    lost: bool | None = None
    """The API shows no mapping and enough probes of this endpoint failed: no row is rendered, it is still probed."""


class ProbeStatus(ApiModel):
    """The last change of what a visit showed. `class_` is the SSH class, `readiness` the highest level reached."""

    class_: str | None = Field(default=None, alias="class")
    message: Text | None = None
    failures: int | None = None
    since: Time | None = None
    readiness: Readiness | None = None


class Episode(ApiModel):
    """A fault from its first observation to its recovery, of one attempt. `kind` is the cause."""

    attempt: str | None = None
    kind: str | None = None
    first_seen: Time | None = None
    observations: int | None = None
    resumes: int | None = None
    alerted: bool | None = None


class MigrationStatus(ApiModel):
    """A move to another host. `from_` is the id of the pod that is left."""

    step: MigrationStep | None = None
    from_: str | None = Field(default=None, alias="from")
    reason: Text | None = None
    started_at: Time | None = None
    count_in_window: int | None = None
    window_start: Time | None = None


class WorkloadStatus(ApiModel):
    """The launched workload, bound to the pod and the start that it was launched for."""

    state: WorkloadState | None = None
    pid: int | None = None
    started_at: Time | None = None
    exit_code: int | None = None
    last_error: Text | None = None
    pod_id: str | None = None
    pod_started_at: Time | None = None
    launch_id: str | None = None
    ended_at: Time | None = None
    """When the workload was first seen dead, or drained."""


class DiagnosisStatus(ApiModel):
    """The open window for a person to look at a failed workload."""

    since: Time | None = None
    until: Time | None = None
    owner: str | None = None


class CellsStatus(ApiModel):
    """How many cells of the pod are where. `summary` is `verified/declared`."""

    declared: int | None = None
    verified: int | None = None
    in_flight: int | None = None
    blocked: int | None = None
    summary: str | None = None


class Ended(ApiModel):
    """An end that stays ended. `started_at` is the start of the pod that ended, `at` when it ended."""

    act: EndedAct | None = None
    reason: Text | None = None
    pod_id: str | None = None
    started_at: Time | None = None
    at: Time | None = None


class CostStatus(ApiModel):
    """A checkpoint in USD, written on transitions: live totals are `accrued_at_since + per_hour * (now - since)`."""

    per_hour: Money | None = None
    since: Time | None = None
    accrued_at_since: Money | None = None
    stopped_per_hour: Money | None = None
    max_burn: Money | None = None


class Receipt(ApiModel):
    """What permitted the last act that may lose data. `digest` is the sha256 of the canonical evidence."""

    pod_id: str | None = None
    at: Time | None = None
    reason: str | None = None
    digest: str | None = None
    verified: int | None = None
    rerun: Annotated[tuple[str, ...] | None, at_most(50)] = None
    discarded: Annotated[tuple[str, ...] | None, at_most(50)] = None
    policy: Text | None = None
    approved_by: Text | None = None


class HistoryEntry(ApiModel):
    """A past attempt. `cost` in USD; `logs` names the ConfigMap with its captured logs."""

    attempt: str | None = None
    pod_id: str | None = None
    from_: Time | None = Field(default=None, alias="from")
    until: Time | None = None
    reason: Text | None = None
    cost: Money | None = None
    logs: str | None = None


class ApprovalStatus(ApiModel):
    """An approve-terminate annotation as first seen; it holds for 24 h from then."""

    pod_id: str | None = None
    first_seen: Time | None = None


class AbandonStatus(ApiModel):
    """An abandon-data annotation that took effect."""

    pod_id: str | None = None
    reason: Text | None = None


class GpuPodStatus(ApiModel):
    """The status of a GpuPod; written as a whole, and only when it differs."""

    observed_generation: int | None = None
    phase: Phase | None = None
    message: Text | None = None
    next_check: Time | None = None
    conditions: tuple[Condition, ...] = ()
    attempt: Attempt | None = None
    account: AccountStatus | None = None
    pod: PodStatus | None = None
    endpoint: EndpointStatus | None = None
    probe: ProbeStatus | None = None
    episode: Episode | None = None
    migration: MigrationStatus | None = None
    migrations: int | None = None
    workload: WorkloadStatus | None = None
    diagnosis: DiagnosisStatus | None = None
    cells: CellsStatus | None = None
    ended: Ended | None = None
    cost: CostStatus | None = None
    receipt: Receipt | None = None
    history: Annotated[tuple[HistoryEntry, ...], newest(20)] = ()
    released: Annotated[tuple[str, ...] | None, newest(100)] = None
    """Pod ids given up by Orphan or Stop: neither ours any more nor leaks."""
    spent_adoptions: Annotated[tuple[str, ...] | None, newest(10)] = None
    """Pod ids of `spec.adopt` that were seen alive; proven gone they have no further effect."""
    approval: ApprovalStatus | None = None
    abandon: AbandonStatus | None = None


__all__ = [
    "AbandonStatus",
    "AccountStatus",
    "ApprovalStatus",
    "Attempt",
    "AttemptCandidate",
    "AttemptCause",
    "AttemptIntent",
    "Backoff",
    "CellsStatus",
    "CostStatus",
    "DiagnosisStatus",
    "Ended",
    "EndedAct",
    "EndpointStatus",
    "Episode",
    "GpuPodStatus",
    "HistoryEntry",
    "MigrationStatus",
    "MigrationStep",
    "Phase",
    "PodStatus",
    "ProbeStatus",
    "Receipt",
    "Refusal",
    "RefusedAct",
    "WorkloadState",
    "WorkloadStatus",
]
