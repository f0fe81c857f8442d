"""Is what we got what we asked for? Price against the caps, GPUs against the ask."""

from __future__ import annotations

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.candidates import price_cap
from gpupod_operator.core.gpupod.scope import Scope
from gpupod_operator.core.provider import ProviderState


def bargain_problem(scope: Scope) -> tuple[Reason, str] | None:
    """Is what we got what we asked for? Price against the caps and GPU count against the ask, before any launch."""
    attempt, pod = scope.status.attempt, scope.pod
    if attempt is None or pod is None or (attempt.candidate is None and not attempt.taken_over):
        return None
    if attempt.launch_confirmed or attempt.contacted or attempt.ever_ready:
        return None  # in use: a cap that is lowered now is for the next create and must not end work
    if pod.state in (ProviderState.EXITED, ProviderState.TERMINATED):
        return None
    candidate, spec = attempt.candidate, scope.spec
    cap = price_cap(spec, candidate) if candidate is not None else spec.spend.max_price_per_hour
    if cap is not None and pod.cost_per_hour is not None and pod.cost_per_hour > cap:
        return (
            Reason.PRICE_OVER_CAP,
            f"pod {pod.id} bills ${pod.cost_per_hour:f}/h, over the cap of ${cap:f}/h",
        )
    counts = {candidate.count or 1} if candidate is not None else {c.count for c in spec.placement.candidates}
    placed = pod.state is ProviderState.RUNNING and not attempt.restarted
    fine = counts if placed else counts | {0}
    if pod.gpu_count is not None and counts and pod.gpu_count not in fine:
        asked = " or ".join(str(count) for count in sorted(counts))
        return Reason.GPU_COUNT_MISMATCH, f"pod {pod.id} has {pod.gpu_count} GPUs instead of {asked}"
    return None


def zero_gpus(scope: Scope) -> bool:
    """A degraded start: the pod runs without the GPUs that were asked for."""
    pod = scope.pod
    return pod is not None and pod.state is ProviderState.RUNNING and pod.gpu_count == 0
