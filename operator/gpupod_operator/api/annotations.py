"""Annotations that a person sets. Each value is bound to one pod id or one moment, so an old one cannot act again."""

from __future__ import annotations

from typing import Final

APPROVE_TERMINATE: Final = "gpupod.dev/approve-terminate"
"""`<pod id>`: approves ending exactly this pod, for 24 h from first sight."""
ABANDON_DATA: Final = "gpupod.dev/abandon-data"
"""`<pod id>: <reason>`: data on exactly this pod may be lost. On a GpuPod for all its cells, on a SweepCell for it."""
MIGRATE: Final = "gpupod.dev/migrate"
"""`<pod id>`: move off exactly this pod, through the gate."""
RESUME: Final = "gpupod.dev/resume"
"""`<pod id>`: clears the end that `status.ended` records for exactly this pod."""
CLOSE_BREAKER: Final = "gpupod.dev/close-breaker"
"""`<time>` (RFC 3339): closes the fleet breaker if it opened before that moment."""
RECONCILE_AT: Final = "gpupod.dev/reconcile-at"
"""`<time>` or any text: a new value makes the operator look again and ends a stalled wait for capacity."""

ABANDON_SEPARATOR: Final = ":"


def parse_abandon(value: str) -> tuple[str, str] | None:
    """`"<pod id>: <reason>"` as (pod id, reason), or None when either part is empty: it then has no effect."""
    pod_id, separator, reason = value.partition(ABANDON_SEPARATOR)
    pod_id, reason = pod_id.strip(), reason.strip()
    if not separator or not pod_id or not reason:
        return None
    return pod_id, reason
