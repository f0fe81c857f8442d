"""A pod that does not declare 22/tcp: declare it. The PATCH wipes the container disk, so the gate is asked (Reset)."""

from __future__ import annotations

from gpupod_operator.api.gpupod_status import AttemptIntent, Receipt
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import DrainFirst, GateReason
from gpupod_operator.core.gpupod import permission
from gpupod_operator.core.gpupod.draining import drain
from gpupod_operator.core.gpupod.episodes import clear_episode
from gpupod_operator.core.gpupod.launches import renew_launch
from gpupod_operator.core.gpupod.migration import delete_again_after
from gpupod_operator.core.gpupod.scope import Act, Scope, Step, Wait
from gpupod_operator.core.gpupod.starting import SSH_PORT
from gpupod_operator.core.ownership import OwnedPod
from gpupod_operator.core.plan import PatchPod
from gpupod_operator.core.provider import PatchRequest


def declare_port(scope: Scope) -> Step:
    """Receipt, intent and what a reset means (a new boot, the work is placed again) in one write before the call."""
    attempt, pod = scope.status.attempt, scope.pod
    assert attempt is not None and pod is not None
    if attempt.intent is AttemptIntent.PATCH and attempt.intent_time is not None:
        due = attempt.intent_time + delete_again_after(scope)
        if scope.now <= due:
            scope.wake_in(scope.policy.observe_every)
            return Wait(
                Reason.PORT_NOT_DECLARED,
                f"the ports of pod {pod.id} were changed; waiting until RunPod shows 22/tcp, billing {scope.price}",
                until=due,
            )
    verdict = permission.ask(scope, GateReason.RESET)
    if isinstance(verdict, DrainFirst):
        return drain(scope, verdict)
    if not isinstance(verdict, Receipt):
        return verdict
    handle = permission.owned(scope, permission.live_pod(scope))
    if not isinstance(handle, OwnedPod):
        return handle
    scope.put(receipt=verdict, endpoint=None, probe=None)
    clear_episode(scope)
    renew_launch(scope)
    scope.put_attempt(
        intent=AttemptIntent.PATCH,
        intent_time=scope.now,
        start_requested_at=scope.now,
        restarted=True,
        ever_ready=None,
        launched_start=None,
        agent_start=None,
        drained=None,
    )
    ports = tuple(dict.fromkeys((*pod.ports, f"{SSH_PORT}/tcp")))
    return Act(
        PatchPod(handle, PatchRequest(ports=ports), "22/tcp was not declared"),
        Reason.PORT_NOT_DECLARED,
        f"declaring 22/tcp on pod {handle.id}, which resets its container; {permission.safe_words(verdict)}",
    )


def note_patched(scope: Scope) -> None:
    """RunPod shows the port: the change is made."""
    attempt, pod = scope.status.attempt, scope.pod
    if attempt is None or pod is None or attempt.intent is not AttemptIntent.PATCH:
        return
    if f"{SSH_PORT}/tcp" in pod.ports:
        scope.put_attempt(intent=AttemptIntent.NONE, intent_time=None)
