"""Which changes of a status are told as events."""

from __future__ import annotations

from collections.abc import Iterable

from gpupod_operator.api.conditions import Condition, find_condition
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.plan import Transition

WARNINGS = frozenset(
    {
        Reason.ACCOUNT_MISMATCH,
        Reason.AUTH_DENIED,
        Reason.CREATE_UNKNOWN,
        Reason.DUPLICATE_PODS,
        Reason.HOST_FAULT,
        Reason.HOST_KEY,
        Reason.HOST_UNRESPONSIVE,
        Reason.IMAGE_ERROR,
        Reason.INSUFFICIENT_BALANCE,
        Reason.INVALID_REQUEST,
        Reason.MIGRATION_BUDGET_EXHAUSTED,
        Reason.NEVER_PUBLISHED,
        Reason.OBSERVATION_SUSPECT,
        Reason.PORT_LOST,
        Reason.PORT_NOT_DECLARED,
        Reason.PRICE_OVER_CAP,
        Reason.PRIVATE_MAPPING_ONLY,
        Reason.STOPPED_OUTSIDE,
        Reason.TERMINATED_OUTSIDE,
        Reason.UNAUTHORIZED,
        Reason.UNLAUNCHED,
    }
)


def transitions(before: GpuPodStatus, after: GpuPodStatus) -> tuple[Transition, ...]:
    """Events of this pass: a condition whose status or reason changed, naming the pod id."""
    pod_id = _named_pod(before, after)
    found = []
    for kind in ("Provisioned", "Reachable", "Wedged", "ArtifactsSafe", "WorkloadRunning", "Registered", "Stalled"):
        old, new = find_condition(before.conditions, kind), find_condition(after.conditions, kind)
        if new is None or (old is not None and (old.status, old.reason) == (new.status, new.reason)):
            continue
        if not _worth_telling(kind, old, new) or (new.reason == Reason.UNLAUNCHED and _told_before(before, after)):
            continue
        bad = new.reason in {str(r) for r in WARNINGS} or (kind in ("Wedged", "Stalled") and new.status == "True")
        words = new.message if pod_id is None or pod_id in new.message else f"pod {pod_id}: {new.message}"
        found.append(Transition(new.reason, words, bad))
    return tuple(_unique(found))


def _worth_telling(kind: str, old: Condition | None, new: Condition) -> bool:
    """Not that things stay as they are: another reason for no fault, for no row without a pod, for a pod that is there.

    Each event is a write to the API server, and a thousand pods that start have a thousand of each.
    """
    if new.reason in (Reason.DISPOSABLE, Reason.NO_WORKLOAD):
        return False  # as the person wrote it
    if old is None:
        return new.status == "True" or kind == "Provisioned"
    if kind in ("Wedged", "Stalled"):
        return "True" in (old.status, new.status)
    if kind == "Provisioned" and old.status == new.status == "True":
        return False
    absent = {str(Reason.NO_POD), str(Reason.NO_ENDPOINT)}
    return kind != "Registered" or old.status == "True" or new.reason not in absent


def _told_before(before: GpuPodStatus, after: GpuPodStatus) -> bool:
    """Once per start of a pod, however often it is lost from sight in between."""
    old, new = before.attempt, after.attempt
    return old is not None and new is not None and old.unlaunched_start == new.unlaunched_start


def _named_pod(before: GpuPodStatus, after: GpuPodStatus) -> str | None:
    for status in (after, before):
        if status.attempt is not None and status.attempt.pod_id is not None:
            return status.attempt.pod_id
    return None


def _unique(found: Iterable[Transition]) -> list[Transition]:
    seen: dict[str, Transition] = {}
    for item in found:
        seen.setdefault(item.reason, item)
    return list(seen.values())
