"""Visits over SSH: when the next is due, and what one leaves in status."""

from __future__ import annotations

from gpupod_operator.api.gpupod_status import ProbeStatus
from gpupod_operator.core.gpupod.scope import Scope
from gpupod_operator.core.shell import ShellReading, SshClass


def visit_due(scope: Scope) -> bool:
    """No reading of this pod and endpoint, or it is older than the visiting interval."""
    reading = scope.facts.shell
    if scope.facts.visited_now:
        return reading is None
    if reading is None:
        return True
    endpoint = scope.status.endpoint
    if endpoint is not None and endpoint.since is not None and reading.at < endpoint.since:
        return True  # of another start or another mapping, whose launches and keys say nothing about this one
    every = scope.policy.visit_every if reading.ssh is SshClass.OK else scope.policy.observe_every
    return scope.now - reading.at >= every


def record_probe(scope: Scope, reading: ShellReading) -> None:
    """Class and message of the newest visit; `since` moves only when contact is lost or found again.

    A visit that was never made (our own key is missing) leaves everything as it is.
    """
    if reading.ssh is SshClass.NO_KEY:
        return
    before = scope.status.probe
    had = before is not None and before.class_ == SshClass.OK
    has = reading.ssh is SshClass.OK
    flipped = before is None or had != has
    so_far = (before.failures or 0) if before is not None else 0
    # counted up to the number that matters, so that nothing ticks
    failures = 0 if has else min(so_far + int(scope.facts.visited_now), scope.spec.health.confirmations)
    scope.put(
        probe=ProbeStatus(
            class_=str(reading.ssh),
            message=None if has else reading.message[:512],
            failures=failures,
            since=scope.now if flipped or before is None else before.since,
        )
    )
    if has:
        attempt = scope.status.attempt
        if attempt is not None and not attempt.contacted:
            scope.put_attempt(contacted=True)
        endpoint = scope.status.endpoint
        if endpoint is not None and endpoint.host_key is None and reading.host_key is not None:
            scope.put(endpoint=endpoint.model_copy(update={"host_key": reading.host_key}))


def drop_row_if_lost(scope: Scope) -> None:
    """An unmapped pod's row goes only after `confirmations` failed probes of its last endpoint."""
    probe, endpoint = scope.status.probe, scope.status.endpoint
    if probe is None or endpoint is None or (probe.failures or 0) < scope.spec.health.confirmations:
        return
    if not endpoint.lost:
        scope.put(endpoint=endpoint.model_copy(update={"lost": True}))
