"""Conditions, as kstatus, Flux, Argo CD and `kubectl wait` read them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from gpupod_operator.api.base import ApiModel, Text
from gpupod_operator.api.times import Time


class ConditionStatus(StrEnum):
    """Three values: unknown is neither true nor false."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionType(StrEnum):
    """Condition types of both kinds."""

    READY = "Ready"
    PROVISIONED = "Provisioned"
    REACHABLE = "Reachable"
    WEDGED = "Wedged"
    ARTIFACTS_SAFE = "ArtifactsSafe"
    WORKLOAD_RUNNING = "WorkloadRunning"
    SPEND_ALLOWED = "SpendAllowed"
    UP_TO_DATE = "UpToDate"
    REGISTERED = "Registered"
    PROVIDER_OBSERVED = "ProviderObserved"
    SUPPORTED = "Supported"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    PRODUCED = "Produced"
    UPLOADED = "Uploaded"
    VERIFIED = "Verified"


class Condition(ApiModel):
    """One condition (metav1.Condition). `last_transition_time` is when `status` last flipped."""

    type: str
    status: ConditionStatus
    reason: str
    message: Text = ""
    last_transition_time: Time
    observed_generation: int | None = None


def set_condition(
    conditions: tuple[Condition, ...],
    type: str,  # noqa: A002 - the field's own name
    status: ConditionStatus | str,
    reason: str,
    message: str,
    observed_generation: int | None,
    now: datetime,
) -> tuple[Condition, ...]:
    """The conditions with this one set, in stable order; its transition time moves only when `status` flips."""
    wanted = ConditionStatus(status)
    before = find_condition(conditions, type)
    since = before.last_transition_time if before is not None and before.status is wanted else now
    after = Condition(
        type=type,
        status=wanted,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=observed_generation,
    )
    if before is None:
        return (*conditions, after)
    return tuple(after if c.type == type else c for c in conditions)


def find_condition(conditions: Iterable[Condition], type: str) -> Condition | None:  # noqa: A002
    """The condition of this type, or None."""
    return next((c for c in conditions if c.type == type), None)


def is_true(conditions: Iterable[Condition], type: str) -> bool:  # noqa: A002
    """Whether the condition is there and True; absent and Unknown are not."""
    found = find_condition(conditions, type)
    return found is not None and found.status is ConditionStatus.TRUE
