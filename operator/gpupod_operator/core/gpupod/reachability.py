"""RUNNING is a claim. Diagnose what is reachable, name the cause, and let the wedge clock run (behaviour: 4)."""

from __future__ import annotations

from gpupod_operator.api.conditions import find_condition
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.episodes import clear_episode, note_fault
from gpupod_operator.core.gpupod.probing import drop_row_if_lost, record_probe, visit_due
from gpupod_operator.core.gpupod.scope import Ask, Scope, Step, Wait
from gpupod_operator.core.gpupod.starting import (
    SSH_PORT,
    boot_began,
    follow_endpoint,
    hopeless_image,
    past_start_budget,
)
from gpupod_operator.core.gpupod.unreachable import held, not_visited, unreachable, words_of
from gpupod_operator.core.plan import Need
from gpupod_operator.core.provider import PortMapping, ProviderPod, ProviderState
from gpupod_operator.core.shell import ShellReading, SshClass

SOFT = {SshClass.REFUSED, SshClass.DROPPED, SshClass.OTHER}


def check_reachable(scope: Scope) -> Step | None:
    """None: reachable at the wanted level (conditions say so) or wedged (the caller asks `is_wedged`)."""
    pod = scope.pod
    if pod is None or pod.state is not ProviderState.RUNNING:
        return None
    if not wants_ssh_port(scope):
        return _without_ssh(scope)
    before = scope.status.endpoint
    mapping = follow_endpoint(scope)
    if mapping is None:
        return _unmapped(scope, pod)
    if before is not None and before.address != (scope.status.endpoint.address if scope.status.endpoint else None):
        scope.condition("Registered", True, Reason.STALE_PORT, f"the mapping of pod {pod.id} changed: row re-rendered")
    return _mapped(scope, pod, mapping)


def wants_ssh_port(scope: Scope) -> bool:
    """Does this object expect to reach the pod on 22/tcp?"""
    return f"{SSH_PORT}/tcp" in scope.spec.container.ports or scope.adopt_id is not None


def _without_ssh(scope: Scope) -> Step | None:
    scope.condition("Reachable", True, Reason.NO_SSH_WANTED, "no 22/tcp in container.ports: running is ready")
    clear_episode(scope)
    return None


def _unmapped(scope: Scope, pod: ProviderPod) -> Step | None:
    """No complete mapping. One sample is nothing; the last endpoint may still answer (S05)."""
    attempt = scope.status.attempt
    assert attempt is not None
    entry = pod.mapping(SSH_PORT)
    if pod.ports and f"{SSH_PORT}/tcp" not in pod.ports:
        kind = Reason.PORT_NOT_DECLARED
    elif entry is not None:
        kind = Reason.PRIVATE_MAPPING_ONLY
    elif scope.status.endpoint is not None and scope.status.endpoint.pod_id == pod.id:
        kind = Reason.PORT_LOST
    else:
        kind = Reason.NEVER_PUBLISHED
    if kind is Reason.PORT_LOST:
        # what was read before the loss says nothing about it
        first_look = scope.status.episode is None and not _misreported(scope) and not scope.facts.visited_now
        if scope.target() is not None and (first_look or visit_due(scope)):
            return Ask(frozenset({Need.SHELL}))
        reading = scope.facts.shell
        if reading is not None and reading.ssh is SshClass.OK and scope.target() is not None:
            record_probe(scope, reading)
            if _one_look(scope, kind):
                return None
            scope.condition(
                "Reachable",
                True,
                Reason.PROVIDER_MISREPORT,
                f"RunPod shows no mapping, but the last endpoint of pod {pod.id} answers with the pinned key",
            )
            clear_episode(scope)
            scope.wake_in(scope.policy.observe_every)
            return None
        if reading is not None and reading.ssh is SshClass.NO_KEY:
            return not_visited(scope, pod, reading)
        if reading is not None:
            record_probe(scope, reading)
            drop_row_if_lost(scope)
    if kind is Reason.NEVER_PUBLISHED and not attempt.ever_ready:
        began = boot_began(scope)
        hopeless = hopeless_image(scope, pod)
        if hopeless is not None:
            return hopeless
        if scope.now - began <= scope.spec.health.start_timeout:
            scope.condition("Reachable", False, Reason.STARTING, "no port mapping yet")
            scope.wake_at(began + scope.spec.health.start_timeout)
            return Wait(
                Reason.STARTING,
                f"pod {pod.id} is RUNNING without a port mapping yet, billing {scope.price}",
                until=began + scope.spec.health.start_timeout,
            )
        step = past_start_budget(scope, pod)
        if not isinstance(step, Wait) or step.reason is not Reason.NEVER_PUBLISHED:
            return step
    else:
        note_fault(scope, kind, scope.now)
    return unreachable(scope, pod, kind, words_of(kind, pod))


def _one_look(scope: Scope, kind: Reason) -> bool:
    """A pod that answers SSH and lacks its runtime in a look or two: nothing happened, nothing is told."""
    before = find_condition(scope.before.conditions, "Reachable")
    if before is None or before.status != "True" or before.reason == Reason.PROVIDER_MISREPORT:
        return False
    if (note_fault(scope, kind, scope.now).observations or 0) >= scope.spec.health.confirmations:
        return False
    scope.condition("Reachable", True, Reason(before.reason), before.message)
    scope.wake_in(scope.policy.observe_every)
    return True


def _misreported(scope: Scope) -> bool:
    before = find_condition(scope.before.conditions, "Reachable")
    return before is not None and before.reason == Reason.PROVIDER_MISREPORT


def _mapped(scope: Scope, pod: ProviderPod, mapping: PortMapping) -> Step | None:
    """A mapping is there. Probe up to the wanted level."""
    level = scope.spec.health.readiness
    if level == "Mapping" and not scope.visits_wanted:
        _reached(scope, pod, f"mapped to {mapping.ip}:{mapping.public}")
        return None
    reading = scope.facts.shell
    if visit_due(scope):
        return Ask(frozenset({Need.SHELL}))
    assert reading is not None
    if reading.ssh is SshClass.NO_KEY and level != "Mapping":
        return not_visited(scope, pod, reading)
    record_probe(scope, reading)
    if reading.ssh is SshClass.OK or (level == "Tcp" and reading.tcp_open) or level == "Mapping":
        _reached(scope, pod, f"{level} at {mapping.ip}:{mapping.public}")
        scope.wake_in(scope.policy.visit_every)
        return None
    return _not_answering(scope, pod, reading)


def _reached(scope: Scope, pod: ProviderPod, how: str) -> None:
    scope.condition("Reachable", True, Reason.REACHABLE, f"pod {pod.id} is reachable: {how}")
    clear_episode(scope)
    probe = scope.status.probe
    if probe is not None and probe.failures:
        # those of a loss that is over do not count towards the next one
        scope.put(probe=probe.model_copy(update={"failures": 0}))
    attempt = scope.status.attempt
    if attempt is not None and not attempt.ever_ready:
        scope.put_attempt(ever_ready=True)


def _not_answering(scope: Scope, pod: ProviderPod, reading: ShellReading) -> Step | None:
    endpoint = scope.status.endpoint
    since = endpoint.since if endpoint is not None and endpoint.since is not None else scope.now
    due = since + scope.spec.health.ssh_wait
    attempt = scope.status.attempt
    first_time = attempt is not None and not attempt.ever_ready
    if first_time and scope.now <= due and reading.ssh is not SshClass.HOST_KEY:
        scope.condition("Reachable", False, Reason.SERVICE_NOT_READY, reading.message)
        scope.wake_at(due)
        scope.wake_in(scope.policy.observe_every)
        return Wait(
            Reason.SERVICE_NOT_READY,
            f"pod {pod.id} is mapped and SSH is not ready ({reading.message}); waiting within health.sshWait, billing "
            f"{scope.price}",
            until=due,
        )
    if reading.ssh is SshClass.HOST_KEY:
        return held(
            scope,
            Reason.HOST_KEY,
            f"pod {pod.id} shows another host key than the one pinned within this "
            f"start ({reading.message}): it is never trusted again by itself. Stop and start the pod, or migrate",
        )
    if reading.ssh is SshClass.AUTH_DENIED:
        return held(
            scope,
            Reason.AUTH_DENIED,
            f"pod {pod.id} denies our SSH key ({reading.message}): the host "
            f"lives. Check that the image honours PUBLIC_KEY",
        )
    if reading.ssh in SOFT:
        return held(
            scope,
            Reason.SERVICE_NOT_READY,
            f"pod {pod.id} is mapped but its SSH service does not answer "
            f"({reading.message}): the host lives, not a wedge. Check the image's sshd",
        )
    if reading.ssh is SshClass.NAME_RESOLUTION:
        return held(scope, Reason.NAME_RESOLUTION, f"the endpoint's name cannot be resolved ({reading.message})")
    note_fault(scope, Reason.HOST_UNRESPONSIVE, scope.now, by_visit=True)
    return unreachable(scope, pod, Reason.HOST_UNRESPONSIVE, f"pod {pod.id} is mapped and does not answer TCP")
