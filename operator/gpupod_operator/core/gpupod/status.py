"""Every condition, the phase and the message are computed here, once, from what the pass found."""

from __future__ import annotations

from gpupod_operator.api.conditions import find_condition, set_condition
from gpupod_operator.api.gpupod_status import GpuPodStatus, MigrationStep, Phase, WorkloadState
from gpupod_operator.api.policies import PodState
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.migration import active_step
from gpupod_operator.core.gpupod.scope import Act, Presence, Release, Scope, Step, Wait
from gpupod_operator.core.gpupod.unlaunched import note_unlaunched
from gpupod_operator.core.provider import ProviderState

DEFERRING = (
    Reason.NO_COMPUTE_AVAILABLE,
    Reason.ACCOUNT_CEILING,
    Reason.NAMESPACE_CEILING,
    Reason.POD_CEILING,
    Reason.CEILING_QUEUE,
)
"""Nothing is rented because somebody who pays said so."""


def conclude(scope: Scope, step: Step | None) -> GpuPodStatus:
    """The full new status. Conditions that this pass could not judge keep what they said."""
    _defaults(scope, step)
    conditions = scope.before.conditions
    for kind, (value, reason, message) in sorted(scope.conditions.items()):
        conditions = set_condition(conditions, kind, value, str(reason), message, scope.identity.generation, scope.now)
    until = step.until if isinstance(step, Wait) else None
    scope.put(
        observed_generation=scope.identity.generation,
        phase=phase(scope, step),
        message=_message(scope, step),
        next_check=until,
        conditions=conditions,
    )
    return scope.status


def _defaults(scope: Scope, step: Step | None) -> None:
    have = scope.conditions
    no_pod = scope.presence in (Presence.NONE, Presence.GONE)
    if no_pod:
        reason = step.reason if isinstance(step, (Wait, Act)) else Reason.NO_POD
        have.setdefault("Provisioned", ("False", reason, _message(scope, step) or "no pod exists"))
        have["Reachable"] = ("False", Reason.NO_POD, "no pod exists")
        have["Wedged"] = ("False", Reason.NO_POD, "no pod exists")
        have.setdefault("WorkloadRunning", ("False", Reason.NO_POD, "no pod exists"))
        have.setdefault("UpToDate", ("True", Reason.NO_POD, "no pod exists"))
    elif have.get("Reachable", ("",))[0] == "True":
        have.setdefault("Wedged", ("False", Reason.REACHABLE, "reachable"))
    elif scope.status.episode is None:
        have.setdefault("Wedged", ("False", Reason.NO_FAULT, "no fault episode runs"))
    if not no_pod and have.get("Reachable", ("",))[0] == "False":
        _workload_out_of_contact(scope)
    if not no_pod and not scope.spec.workload.command:
        have.setdefault("WorkloadRunning", ("False", Reason.NO_WORKLOAD, "spec.workload.command is not set"))
    have.setdefault("SpendAllowed", ("True", Reason.SPEND_ALLOWED, "within the limits of spec.spend"))
    verdict = scope.facts.registration(scope.status) if scope.facts.registration is not None else None
    if verdict is not None:
        ok, reason, message = verdict
        have.setdefault("Registered", (str(ok), reason, message))
    if "ArtifactsSafe" not in have:
        _artifacts(scope)
    _ready(scope)
    note_unlaunched(scope)
    _kstatus(scope, step)


def _workload_out_of_contact(scope: Scope) -> None:
    """Without a visit the workload is unknown, never dead; a pod that does not run runs no workload."""
    before = find_condition(scope.before.conditions, "WorkloadRunning")
    if "WorkloadRunning" in scope.conditions or before is None:
        return
    state = scope.pod.state if scope.pod is not None else None
    if before.status != "False" and state in (ProviderState.EXITED, ProviderState.ERROR, ProviderState.TERMINATED):
        scope.condition("WorkloadRunning", False, Reason.POD_NOT_RUNNING, f"RunPod says {state}")
    elif before.status == "True":
        scope.condition("WorkloadRunning", None, Reason.WORKLOAD_UNKNOWN, "the pod cannot be visited")


def _artifacts(scope: Scope) -> None:
    """A standing view; the gate itself reads everything anew before it permits anything."""
    cells = scope.status.cells
    if scope.spec.remediation.artifacts == "Disposable":
        scope.condition("ArtifactsSafe", True, Reason.DISPOSABLE, "remediation.artifacts is Disposable")
    elif not scope.facts.declared_cells:
        scope.condition(
            "ArtifactsSafe",
            None,
            Reason.NO_CELLS_DECLARED,
            "no SweepCell names this pod: nothing automatic ends it. Declare cells, or set remediation.artifacts to "
            "Disposable",
        )
    elif cells is not None and cells.declared is not None and cells.verified == cells.declared:
        scope.condition("ArtifactsSafe", True, Reason.ALL_VERIFIED, "every declared cell is verified on the Hub")
    else:
        scope.condition("ArtifactsSafe", False, Reason.CELLS_UNVERIFIED, "cells are not on the Hub yet")


def _ready(scope: Scope) -> None:
    provisioned = scope.conditions.get("Provisioned", ("Unknown", Reason.PENDING, ""))
    reachable = scope.conditions.get("Reachable")
    if reachable is None:
        before = find_condition(scope.before.conditions, "Reachable")
        if scope.presence is Presence.UNKNOWN and before is not None:
            return  # keep: an unknown observation changes nothing
        reachable = ("False", Reason.PENDING, "not looked at yet")
    if scope.identity.deleting:
        scope.condition("Ready", False, Reason.DELETING, "the object is being deleted")
    elif provisioned[0] == "True" and reachable[0] == "True":
        scope.condition("Ready", True, Reason.READY, reachable[2])
    else:
        worse = provisioned if provisioned[0] != "True" else reachable
        unknown = provisioned[0] == "True" and reachable[0] == "Unknown"  # nobody could look: neither up nor down
        scope.condition("Ready", None if unknown else False, worse[1], worse[2])


def _kstatus(scope: Scope, step: Step | None) -> None:
    """Reconciling and Stalled as kstatus reads them: never both true; neither when at rest."""
    if isinstance(step, Wait) and step.stalled:
        scope.condition("Stalled", True, step.reason, step.message)
        scope.condition("Reconciling", False, step.reason, "waiting for an edit or for the world to change")
        return
    scope.condition("Stalled", False, Reason.NO_FAULT, "nothing is stuck")
    resting = step is None or (isinstance(step, Wait) and step.steady)
    if resting:
        scope.condition("Reconciling", False, Reason.READY, "as asked for")
    else:
        reason = step.reason if isinstance(step, (Act, Wait)) else Reason.DELETING
        scope.condition("Reconciling", True, reason, _message(scope, step))


def _message(scope: Scope, step: Step | None) -> str:
    if isinstance(step, (Wait, Act, Release)):
        return step.message
    if scope.spec.paused:
        return "paused: observed and rendered, acted on in no way. Set spec.paused to false to go on"
    endpoint = scope.status.endpoint
    where = f" at {endpoint.address}" if endpoint is not None else ""
    return f"pod {scope.pod_id} is ready{where}, billing {scope.price}"


def phase(scope: Scope, step: Step | None) -> Phase:
    """The one word for people, derived from everything else."""
    if scope.identity.deleting:
        return Phase.TERMINATING
    reason = step.reason if isinstance(step, (Wait, Act)) else None
    ended, pod = scope.status.ended, scope.pod
    if reason in DEFERRING and (pod is None or scope.presence in (Presence.NONE, Presence.GONE)):
        return Phase.DEFERRED
    if reason in (Reason.NO_CAPACITY, Reason.INSUFFICIENT_BALANCE):
        return Phase.WAITING_FOR_CAPACITY
    no_pod = scope.presence in (Presence.NONE, Presence.GONE)
    if active_step(scope) is not None and _moving(scope):
        return Phase.MIGRATING
    if no_pod and (ended is not None or scope.spec.state is PodState.STOPPED):
        return Phase.STOPPED
    if no_pod:
        failed = isinstance(step, Wait) and step.stalled
        return Phase.FAILED if failed else Phase.PENDING
    if scope.presence is Presence.UNKNOWN and scope.spec.state is PodState.STOPPED and scope.before.phase is not None:
        return scope.before.phase
    exited = pod is not None and pod.state is ProviderState.EXITED
    if exited and reason is not Reason.STARTING:
        return Phase.STOPPED
    if reason is Reason.STOPPING or scope.spec.state is PodState.STOPPED:
        return Phase.STOPPING
    if _true(scope, "Wedged"):
        return Phase.WEDGED
    return _up(scope, reason)


def _moving(scope: Scope) -> bool:
    """Past the DELETE, or about to send it; a migration that the gate holds is shown as the wedge that it is."""
    step = active_step(scope)
    return step not in (None, MigrationStep.CAPTURE_LOGS, MigrationStep.GATE) or not _true(scope, "Wedged")


def _up(scope: Scope, reason: Reason | None) -> Phase:
    if _true(scope, "Ready"):
        workload = scope.status.workload
        if workload is not None and workload.state in (WorkloadState.START_FAILED, WorkloadState.FAILED):
            return Phase.DIAGNOSING
        return Phase.READY
    attempt = scope.status.attempt
    if reason is Reason.IMAGE_ERROR:
        return Phase.FAILED
    if scope.presence is Presence.FRESH or (scope.pod is not None and scope.pod.state is ProviderState.PROVISIONING):
        return Phase.PROVISIONING
    unknown = scope.presence is Presence.UNKNOWN or scope.conditions.get("Reachable", ("",))[0] == "Unknown"
    if unknown and scope.before.phase is not None:
        return scope.before.phase
    if attempt is not None and not attempt.ever_ready and scope.status.episode is None:
        return Phase.STARTING
    return Phase.UNREACHABLE


def _true(scope: Scope, kind: str) -> bool:
    return scope.conditions.get(kind, ("",))[0] == "True"
