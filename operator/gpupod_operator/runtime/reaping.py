"""Which orphans may be deleted: those that provably were never in use, and only where a person asked for it."""

from __future__ import annotations

from collections.abc import Iterable

from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.core.provider import ProviderPod
from gpupod_operator.runtime.fleet import Fleet


def reapable(orphans: Iterable[ProviderPod], fleet: Fleet) -> tuple[ProviderPod, ...]:
    """Pure. A pod made before records were kept, or of unknown age, may have been in use: it is only reported."""
    since = fleet.reaping_since
    if since is None:
        return ()
    return tuple(
        pod for pod in orphans if pod.created_at is not None and pod.created_at > since and pod.id not in fleet.used
    )


def came_into_use(before: GpuPodStatus, after: GpuPodStatus) -> str | None:
    """The id of a pod that this status is the first to call Ready, visited or launched."""
    attempt, old = after.attempt, before.attempt
    if attempt is None or attempt.pod_id is None:
        return None
    was = old is not None and old.pod_id == attempt.pod_id and _used(before)
    return attempt.pod_id if _used(after) and not was else None


def _used(status: GpuPodStatus) -> bool:
    attempt = status.attempt
    assert attempt is not None
    return bool(attempt.ever_ready or attempt.contacted or attempt.launch_confirmed)
