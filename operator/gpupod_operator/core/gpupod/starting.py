"""The recorded pod is there and wanted Running: from PROVISIONING to a mapping, and pods that end by themselves."""

from __future__ import annotations

from datetime import datetime, timedelta

from gpupod_operator.api.conditions import find_condition
from gpupod_operator.api.gpupod_status import AttemptIntent, Ended, EndpointStatus
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.episodes import clear_episode, is_wedged, note_fault
from gpupod_operator.core.gpupod.scope import Ask, Presence, Scope, Step, Wait
from gpupod_operator.core.known import Known
from gpupod_operator.core.plan import Need
from gpupod_operator.core.provider import PortMapping, ProviderPod, ProviderState

SSH_PORT = 22

PULL_MARKS = ("still fetching image", "pulling", "download", "extracting", "pull complete")
IMAGE_ERRORS = (
    "failed to pull image",
    "manifest unknown",
    "pull access denied",
    "unauthorized: authentication required",
    "no such image",
    "repository does not exist",
    "invalid reference format",
)


def start_pod_up(scope: Scope) -> Step | None:
    """Up to a complete mapping. Returns None once RUNNING is worth looking at for reachability."""
    if scope.presence is Presence.FRESH or scope.pod is None:
        scope.condition("Provisioned", True, Reason.PROVISIONING, f"pod {scope.pod_id} is created")
        scope.condition("Reachable", False, Reason.PROVISIONING, "the provider does not show the pod yet")
        return Wait(Reason.PROVISIONING, f"pod {scope.pod_id} is created and not listed yet; it bills {scope.price}")
    pod = scope.pod
    scope.condition("Provisioned", True, Reason.PROVISIONED, f"pod {pod.id} is {pod.raw_state}")
    if pod.state in (ProviderState.PROVISIONING, ProviderState.STARTING):
        return _booting(scope, pod)
    if pod.state is ProviderState.UNKNOWN:
        scope.condition("Reachable", None, Reason.PROVIDER_STATUS_UNKNOWN, f"RunPod says {pod.raw_state!r}")
        return Wait(
            Reason.PROVIDER_STATUS_UNKNOWN,
            f"RunPod shows pod {pod.id} with the status {pod.raw_state!r}, which is not known: kept and counted as "
            f"billing ({scope.price})",
        )
    return None


def _booting(scope: Scope, pod: ProviderPod) -> Step:
    began = boot_began(scope)
    budget = scope.spec.health.start_timeout
    scope.condition("Reachable", False, Reason.STARTING, f"pod {pod.id} is {pod.raw_state}")
    hopeless = hopeless_image(scope, pod)
    if hopeless is not None:
        return hopeless
    if scope.now - began <= budget:
        scope.wake_at(began + budget)
        return Wait(
            Reason.STARTING,
            f"pod {pod.id} is {pod.raw_state}, billing {scope.price}; a mapping is due within health.startTimeout",
            until=began + budget,
        )
    return past_start_budget(scope, pod)


def hopeless_image(scope: Scope, pod: ProviderPod) -> Step | None:
    """Within the budget the host's log is read about once a minute: a hopeless image ends the wait at once."""
    elapsed, minute = scope.now - boot_began(scope), timedelta(minutes=1)
    before = find_condition(scope.before.conditions, "Reachable")
    known = before is not None and before.reason == Reason.IMAGE_ERROR
    if not known and (elapsed < minute or elapsed // minute == (elapsed - scope.policy.observe_every) // minute):
        return None
    log = scope.facts.system_log
    if log is None:
        return Ask(frozenset({Need.SYSTEM_LOG}))
    error = image_error(log.value) if isinstance(log, Known) else before.message if known and before else None
    return _image_failed(scope, pod, error) if error is not None else None


def _image_failed(scope: Scope, pod: ProviderPod, error: str) -> Wait:
    scope.condition("Reachable", False, Reason.IMAGE_ERROR, error)
    clear_episode(scope)
    return Wait(
        Reason.IMAGE_ERROR,
        f"pod {pod.id} cannot start its image ({error[:200]}): another host would only burn money. Correct "
        f"container.image or container.registry, then set gpupod.dev/migrate: {pod.id}; the pod bills {scope.price}",
        stalled=True,
    )


def past_start_budget(scope: Scope, pod: ProviderPod) -> Step:
    """The start budget is used up: the host's log tells an image error and a pull in progress from a bad host."""
    log = scope.facts.system_log
    if log is None:
        return Ask(frozenset({Need.SYSTEM_LOG}))
    began, budget = boot_began(scope), scope.spec.health.start_timeout
    lines = log.value if isinstance(log, Known) else ()
    error = image_error(lines)
    if error is not None:
        return _image_failed(scope, pod, error)
    if pulls(lines) and scope.now - began <= 2 * budget:
        scope.condition("Reachable", False, Reason.SLOW_PULL, "the image is still being pulled")
        scope.wake_at(began + 2 * budget)
        return Wait(
            Reason.SLOW_PULL,
            f"pod {pod.id} is still pulling its image, billing {scope.price}; the start budget is extended once, to "
            f"{began + 2 * budget:%H:%M:%S}Z",
            until=began + 2 * budget,
        )
    note_fault(scope, Reason.NEVER_PUBLISHED, began)
    return Wait(
        Reason.NEVER_PUBLISHED,
        f"pod {pod.id} is {pod.raw_state} past health.startTimeout without a mapping, billing {scope.price}",
    )


def boot_began(scope: Scope) -> datetime:
    """When the clock of this start began: the placement as far as it is known, else our own create or start."""
    attempt = scope.status.attempt
    assert attempt is not None
    candidates = [t for t in (attempt.created_at, attempt.start_requested_at) if t is not None]
    return max(candidates) if candidates else scope.now


def image_error(lines: tuple[str, ...]) -> str | None:
    """The last line of the host's log that says that the image itself is the trouble."""
    for line in reversed(lines):
        folded = line.casefold()
        if "cannot be mapped to a host id" in folded or "layer does not exist" in folded:
            continue  # host-specific: a different host may well work
        if any(mark in folded for mark in IMAGE_ERRORS):
            return line.strip()
    return None


def pulls(lines: tuple[str, ...]) -> bool:
    """Does one of the newest lines show a pull in progress?"""
    return any(mark in line.casefold() for line in lines[-5:] for mark in PULL_MARKS)


def ended_by_itself(scope: Scope) -> Step | None:
    """EXITED, ERROR, TERMINATED or gone while Running is wanted: the table of behaviour 3."""
    attempt = scope.status.attempt
    assert attempt is not None
    pod = scope.pod
    if scope.presence is Presence.MISSING:
        scope.condition("Provisioned", None, Reason.CONFIRMING_GONE, f"pod {attempt.pod_id} is missing")
        return Wait(
            Reason.CONFIRMING_GONE,
            f"pod {attempt.pod_id} is missing without our order: counted as live and billing until a GET says 404 and "
            f"{scope.policy.lists_for_gone} complete lists agree",
        )
    if pod is None or scope.presence is not Presence.PRESENT:
        return None
    if pod.state is ProviderState.EXITED:
        if attempt.intent is AttemptIntent.START:
            scope.wake_in(scope.policy.observe_every)
            return Wait(Reason.STARTING, f"pod {pod.id} is being started")
        scope.put(endpoint=None)
        scope.condition("Reachable", False, Reason.STOPPED_OUTSIDE, "the pod is stopped")
        scope.condition("Provisioned", False, Reason.STOPPED_OUTSIDE, f"pod {pod.id} was stopped outside")
        return Wait(
            Reason.STOPPED_OUTSIDE,
            f"pod {pod.id} was stopped, not by this operator: it is not started and nothing is created. Its disks "
            f"go on billing. Set gpupod.dev/resume: {pod.id}, or spec.state Stopped and then Running, to start it",
            stalled=True,
        )
    if pod.state is ProviderState.ERROR:
        note_fault(scope, Reason.HOST_FAULT, scope.now)
        words = f"RunPod says {pod.raw_state} of pod {pod.id}"
        scope.condition("Provisioned", False, Reason.HOST_FAULT, words)
        scope.condition("Reachable", False, Reason.HOST_FAULT, words)
        if not is_wedged(scope):
            scope.wake_in(scope.policy.observe_every)
            return Wait(
                Reason.HOST_FAULT, f"{words}; it counts as wedged once that has lasted. It may bill {scope.price}"
            )
        scope.condition("Wedged", True, Reason.HOST_FAULT, words)
    return None


def follow_endpoint(scope: Scope) -> PortMapping | None:
    """Keep the row's endpoint at what the API shows; a new mapping is a stale row, never a wedge."""
    pod = scope.pod
    if pod is None:
        return None
    mapping = pod.mapping(SSH_PORT)
    complete = mapping is not None and mapping.public is not None and mapping.ip is not None
    before = scope.status.endpoint
    if not complete or mapping is None:
        return None
    same_start = before is not None and before.pod_id == pod.id and before.started_at == pod.started_at
    if same_start and before is not None and before.host == mapping.ip and before.port == mapping.public:
        if before.lost:
            scope.put(endpoint=before.model_copy(update={"lost": None}))
        return mapping
    scope.put(
        endpoint=EndpointStatus(
            address=f"{mapping.ip}:{mapping.public}",
            host=mapping.ip,
            port=mapping.public,
            # a start makes a new container and with it a new host key; within one start the pin stays
            host_key=before.host_key if same_start and before is not None else None,
            since=scope.now,
            pod_id=pod.id,
            started_at=pod.started_at,
        )
    )
    return mapping


def mark_ended(scope: Scope, act: str, reason: str) -> None:
    """Record an end that stays ended until a person lifts it."""
    pod = scope.status.pod
    scope.put(
        ended=Ended(
            act=act,
            reason=reason,
            pod_id=scope.pod_id or scope.adopt_id,
            started_at=pod.started_at if pod is not None else None,
            at=scope.now,
        )
    )
    clear_episode(scope)
