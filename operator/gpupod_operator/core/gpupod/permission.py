"""Asks the gate, with the facts of this pass, and turns its answer into a step."""

from __future__ import annotations

from datetime import datetime

from gpupod_operator.api.annotations import ABANDON_DATA, APPROVE_TERMINATE
from gpupod_operator.api.gpupod_status import AttemptCause, GpuPodStatus, Receipt
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate import (
    Blocked,
    DrainFirst,
    GateAct,
    GateNeed,
    GateQuestion,
    GateReason,
    NeedsFacts,
    Safe,
    Undecided,
    judge,
)
from gpupod_operator.core.gpupod.agent import keep_agent
from gpupod_operator.core.gpupod.launches import note_end
from gpupod_operator.core.gpupod.scope import Ask, Presence, Scope, Step, Wait
from gpupod_operator.core.known import Fact, Known, Unknown
from gpupod_operator.core.ownership import OwnedPod
from gpupod_operator.core.plan import Need
from gpupod_operator.core.provider import ProviderPod

NEEDS = {
    GateNeed.ACCOUNT: Need.ACCOUNT,
    GateNeed.POD: Need.POD,
    GateNeed.CELLS: Need.CELLS,
    GateNeed.SHELL: Need.SHELL,
    GateNeed.HUB: Need.LISTINGS,
}


def ask(scope: Scope, reason: GateReason, *, act: GateAct | None = None) -> Step | Receipt | DrainFirst:
    """A receipt permits the act in this pass and only in it. Anything else is the step to take instead."""
    note_end(scope)
    verdict = judge(question(scope, reason, act))
    if isinstance(verdict, NeedsFacts):
        return Ask(frozenset(NEEDS[n] for n in verdict.needs))
    if isinstance(verdict, Safe):
        scope.condition("ArtifactsSafe", True, Reason.ALL_VERIFIED, safe_words(verdict.receipt))
        return verdict.receipt
    if isinstance(verdict, DrainFirst):
        return verdict
    if isinstance(verdict, Blocked):
        scope.condition("ArtifactsSafe", False, verdict.reason, verdict.why)
        return keep_agent(scope) or Wait(
            verdict.reason, f"{reason} of pod {scope.pod_id} is held: {verdict.why}", stalled=True
        )
    assert isinstance(verdict, Undecided)
    scope.condition("ArtifactsSafe", None, verdict.reason, verdict.why)
    renewed = keep_agent(scope)
    if renewed is not None:
        return renewed
    held = f"{reason} of pod {scope.pod_id} is held: {verdict.why}; {_remedy(scope, verdict.reason)}"
    return Wait(verdict.reason, held, stalled=verdict.reason in (Reason.ADOPT_FOREIGN, Reason.ACCOUNT_MISMATCH))


def _remedy(scope: Scope, reason: Reason) -> str:
    """What a person can do about an act that cannot be judged. What is not ours is not ours to give up, either."""
    if reason is Reason.ADOPT_FOREIGN:
        return (
            "it is not touched. Give the operator the --instance-id that made it, or set deletionPolicy to Orphan: "
            "then the object can be deleted without it"
        )
    if reason is Reason.ACCOUNT_MISMATCH:
        return "nothing is done with another key"
    return f'wait until it can be read, or give the data up with {ABANDON_DATA}: "{scope.pod_id}: <reason>"'


def question(scope: Scope, reason: GateReason, act: GateAct | None) -> GateQuestion:
    """Everything the gate may look at, of this pass only."""
    facts, attempt, status = scope.facts, scope.status.attempt, scope.status
    pod_id = scope.pod_id or ""
    created_by_us = attempt is not None and attempt.cause is not AttemptCause.ADOPT and not attempt.taken_over
    return GateQuestion(
        reason=reason,
        pod_id=pod_id,
        now=scope.now,
        spec=scope.spec,
        status=status,
        instance=scope.identity.instance,
        uid=scope.identity.uid,
        account=facts.account,
        pod=_pod_fact(scope),
        gone=not pod_id or scope.presence is Presence.GONE,
        cells=facts.cells,
        shell=facts.shell if facts.visited_now else None,
        approved_by=approval(scope),
        recreate_problem=_recreate_problem(scope) if reason is GateReason.MIGRATE else None,
        created_by_us=created_by_us,
        ever_contacted=bool(attempt is not None and attempt.contacted) or not created_by_us,
        launch_confirmed=bool(attempt is not None and attempt.launch_confirmed) or not created_by_us,
        price_per_hour=status.pod.cost_per_hour if status.pod is not None else None,
        contact_lost_at=lost_since(status),
        act=act,
        first_start=bool(attempt is not None and not attempt.restarted) and created_by_us,
        abandoned=abandoned(scope),
    )


def _pod_fact(scope: Scope) -> Fact[ProviderPod] | None:
    fact = scope.facts.pod
    if fact is None:
        return None
    if isinstance(fact, Unknown):
        return fact
    if fact.value is None:
        if scope.facts.recent_pod is not None and scope.presence is Presence.FRESH:
            return Known(scope.facts.recent_pod)
        return Unknown(f"pod {scope.pod_id} answers 404 and is not proven gone")
    return Known(fact.value)


def lost_since(status: GpuPodStatus) -> datetime | None:
    """Since when no SSH session reached the pod; None while one does, or before the first."""
    probe = status.probe
    if probe is None or probe.class_ == "Ok":
        return None
    return probe.since


def approval(scope: Scope) -> str | None:
    """`approve-terminate` for exactly this pod id, valid for a day from its first sight (recorded in status)."""
    value = scope.identity.annotations.get(APPROVE_TERMINATE)
    if value is None or value != scope.pod_id:
        return None
    seen = scope.status.approval
    if seen is None or seen.pod_id != value or seen.first_seen is None:
        return f"{APPROVE_TERMINATE}: {value}"
    if scope.now - seen.first_seen > scope.policy.approval_ttl:
        return None
    return f"{APPROVE_TERMINATE}: {value} (since {seen.first_seen:%Y-%m-%dT%H:%M:%SZ})"


def abandoned(scope: Scope) -> str | None:
    """The reason text of `abandon-data: "<pod id>: <reason>"` if it names exactly this pod."""
    value = scope.identity.annotations.get(ABANDON_DATA, "")
    pod_id, _, reason = value.partition(":")
    if scope.pod_id is None or pod_id.strip() != scope.pod_id or not reason.strip():
        return None
    return reason.strip()


def _recreate_problem(scope: Scope) -> str | None:
    if not scope.spec.placement.candidates:
        return "spec.placement.candidates is empty, so the pod could not be created again (add candidates)"
    if not scope.spec.container.image:
        return "spec.container.image is empty, so the pod could not be created again (add the image)"
    return None


def safe_words(receipt: Receipt) -> str:
    """What the receipt stands for, in a sentence."""
    rerun, discarded = len(receipt.rerun or ()), len(receipt.discarded or ())
    return f"{receipt.verified or 0} cells verified on the Hub, {rerun} to re-run, {discarded} discarded"


def owned(scope: Scope, pod: ProviderPod | None) -> OwnedPod | Wait:
    """The handle of the recorded pod, or the reason why it is not ours."""
    if pod is None:
        return Wait(Reason.OBSERVATION_FAILED, f"pod {scope.pod_id} was not seen yet: nothing is written to it")
    handle = scope.handle(pod)
    if isinstance(handle, OwnedPod):
        return handle
    return Wait(Reason.ADOPT_FOREIGN, f"{handle.why}: it is not touched", stalled=True)


def live_pod(scope: Scope) -> ProviderPod | None:
    """The pod of this pass's GET, else of the list, else of our own create's answer."""
    get = scope.facts.pod
    if isinstance(get, Known) and get.value is not None:
        return get.value
    return scope.pod or scope.facts.recent_pod
