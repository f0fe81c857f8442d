"""When the finalizer of a deleted cell goes: never by a timeout, only when nothing can be lost with it."""

from __future__ import annotations

from gpupod_operator.api.phases import VerificationState
from gpupod_operator.core.sweepcell.scope import CellScope
from gpupod_operator.core.sweepcell.verifying import VerificationResult


def finalizer_of(scope: CellScope, result: VerificationResult | None) -> tuple[bool, str]:
    """(keep, why it goes). While the cell is not being deleted the finalizer stays."""
    if not scope.deleting:
        return True, ""
    if result is not None and result.state is VerificationState.VERIFIED:
        return False, f"verified on the Hub at {result.head}"
    abandoned = scope.abandoned or scope.pod.abandoned
    if abandoned is not None:
        return False, f"given up by abandon-data: {abandoned}"
    pod = scope.pod
    if not pod.exists:
        return False, f"there is no GpuPod {pod.name}"
    if pod.never_had_pod:
        return False, f"GpuPod {pod.name} never had a pod"
    if pod.pod_id is None:
        return (False, "its pods are gone or released") if _all_past(scope) else (True, "")
    if pod.pod_id in pod.gone_ids:
        return False, f"pod {pod.pod_id} is proven gone"
    if pod.pod_id in pod.released_ids:
        return False, f"pod {pod.pod_id} is released"
    return True, ""


def _all_past(scope: CellScope) -> bool:
    """No pod is recorded; the one that this cell was read on is over as well."""
    seen, pod = scope.status.observation, scope.pod
    if seen is None or seen.pod_id is None:
        return True
    return seen.pod_id in pod.gone_ids or seen.pod_id in pod.released_ids
