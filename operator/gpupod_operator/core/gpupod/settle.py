"""What an act's answer changes in status. Pure: the executor calls it and writes the result."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gpupod_operator.api.attempt import AttemptTimer
from gpupod_operator.api.gpupod_status import (
    AccountStatus,
    Attempt,
    AttemptIntent,
    Backoff,
    GpuPodStatus,
    Refusal,
    RefusedAct,
    WorkloadState,
)
from gpupod_operator.core.gpupod.backoff import backoff_delay
from gpupod_operator.core.plan import (
    Action,
    CaptureLogs,
    CreatePod,
    DeletePod,
    DrainWorkload,
    InstallAgent,
    LaunchWorkload,
    Outcome,
    PatchPod,
    StartPod,
    StopPod,
)
from gpupod_operator.core.policy import Policy
from gpupod_operator.core.provider import AccountIdentity, Answer, Failure

OUR_STANDING = (Failure.UNAVAILABLE, Failure.API_GONE, Failure.UNAUTHORIZED, Failure.FORBIDDEN)
"""Refusals of us and not of what was asked: nothing was made, and asking again at once brings the same."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The status after the act, and how long the loop should wait before it looks again (None: at once)."""

    status: GpuPodStatus
    pause: float | None = None
    sentence: str = ""


def settle_call(
    status: GpuPodStatus,
    action: Action,
    answer: Answer,
    now: datetime,
    policy: Policy,
    account: AccountIdentity | None,
) -> Settled:
    """A provider call ended. Ambiguity keeps the intent: the next passes find out what happened."""
    if isinstance(action, CreatePod):
        return _created(status, answer, now, policy, account)
    if isinstance(action, DeletePod) and action.ghost:
        # the pod on record has waited long enough; when the ghost is due again is for the decision to say
        return Settled(status, None, _words("delete of a ghost", answer))
    if isinstance(action, DeletePod):
        # whatever DELETE answered, gone is proven by observation only; the intent stands
        return Settled(noted(status, AttemptIntent.DELETE, answer, now), _pause(answer, 1.0), _words("delete", answer))
    if isinstance(action, StopPod):
        return Settled(noted(status, AttemptIntent.STOP, answer, now), _pause(answer, 1.0), _words("stop", answer))
    if isinstance(action, StartPod):
        return _started(status, answer, now, policy)
    assert isinstance(action, PatchPod)
    # the intent stands until RunPod shows the change; a PATCH that had no effect is permitted anew later
    return Settled(noted(status, AttemptIntent.PATCH, answer, now), _pause(answer, 1.0), _words("patch", answer))


def _created(
    status: GpuPodStatus, answer: Answer, now: datetime, policy: Policy, account: AccountIdentity | None
) -> Settled:
    attempt = status.attempt
    assert attempt is not None
    if answer.failure is None and answer.pod is not None:
        attempt = attempt.model_copy(
            update={
                "pod_id": answer.pod.id,
                "intent": AttemptIntent.NONE,
                "intent_time": None,
                "created_at": now,
                "backoff": None,
                "refusals": None,
                "refused": None,
                "waiting_since": None,
            }
        )
        who = status.account
        if account is not None:
            who = AccountStatus(id=account.id, key_fingerprint=account.key_fingerprint)
        return Settled(
            status.model_copy(update={"attempt": attempt, "account": who}), None, f"created pod {answer.pod.id}"
        )
    if answer.failure is Failure.AMBIGUOUS or answer.failure is None:
        attempt = attempt.model_copy(update={"unknown_since": now})
        return Settled(status.model_copy(update={"attempt": attempt}), None, _words("create", answer))
    if answer.failure is Failure.THROTTLED:
        # refused before processing: nothing was made, the same nonce may be used again
        attempt = attempt.model_copy(update={"intent": AttemptIntent.NONE, "intent_time": None})
        pause = max(answer.retry_after or 0.0, policy.observe_every.total_seconds())
        return Settled(status.model_copy(update={"attempt": attempt}), pause, _words("create", answer))
    candidate = attempt.candidate
    refusal = Refusal(
        index=candidate.index if candidate is not None and candidate.index is not None else 0,
        gpu_type=candidate.gpu_type if candidate is not None else None,
        failure=str(answer.failure),
        detail=_said(answer),
    )
    update: dict[str, object] = {
        "intent": AttemptIntent.NONE,
        # the time of the last try stays: `reconcile-at` is compared with it
        "refusals": (*(attempt.refusals or ()), refusal)[-16:],
    }
    if answer.failure is Failure.INSUFFICIENT_BALANCE or answer.failure in OUR_STANDING:
        # no other candidate would fare better
        update["backoff"] = _longer(attempt, now, policy)
    return Settled(
        status.model_copy(update={"attempt": attempt.model_copy(update=update)}), None, _words("create", answer)
    )


def _started(status: GpuPodStatus, answer: Answer, now: datetime, policy: Policy) -> Settled:
    attempt = status.attempt
    assert attempt is not None
    status = noted(status, AttemptIntent.START, answer, now)
    if answer.failure in (Failure.HOST_FULL, Failure.NO_CAPACITY, *OUR_STANDING):
        assert status.attempt is not None
        attempt = status.attempt.model_copy(
            update={"intent": AttemptIntent.NONE, "intent_time": None, "backoff": _longer(attempt, now, policy)}
        )
        return Settled(status.model_copy(update={"attempt": attempt}), None, _words("start", answer))
    return Settled(status, _pause(answer, 1.0), _words("start", answer))


def noted(status: GpuPodStatus, act: AttemptIntent, answer: Answer, now: datetime) -> GpuPodStatus:
    """A refusal is on record until the next order is taken; the same one again changes nothing."""
    attempt = status.attempt
    assert attempt is not None
    before = attempt.refused
    refused = None
    if answer.failure not in (None, Failure.AMBIGUOUS, Failure.THROTTLED):
        refused = RefusedAct(act=act, failure=str(answer.failure), detail=_said(answer), since=now)
        if before is not None and before.model_copy(update={"since": now}) == refused:
            refused = before
    if refused == before:
        return status
    return status.model_copy(update={"attempt": attempt.model_copy(update={"refused": refused})})


def _longer(attempt: Attempt, now: datetime, policy: Policy) -> Backoff:
    failures = (attempt.backoff.failures if attempt.backoff is not None else 0) or 0
    return Backoff(failures=failures + 1, until=now + backoff_delay(failures, policy.backoff_first, policy.backoff_max))


def _said(answer: Answer) -> str:
    return "; ".join((answer.detail, *answer.errors))[:512]


def settle_visit(status: GpuPodStatus, action: Action, outcome: Outcome, now: datetime) -> Settled:
    """An act over SSH ended. `ok` None is unknown: nothing is concluded, the next visit shows."""
    attempt = status.attempt
    assert attempt is not None
    pod = status.pod
    if isinstance(action, InstallAgent):
        if outcome.ok:
            changes = {
                "agent_start": pod.started_at if pod is not None else None,
                "cells_digest": action.cells_digest,
                "timer": action.timer and AttemptTimer(started_at=action.pod_started_at, deadline=action.timer),
            }
            status = status.model_copy(update={"attempt": attempt.model_copy(update=changes)})
        return Settled(status, None if outcome.ok else 5.0, outcome.detail)
    if isinstance(action, LaunchWorkload):
        if outcome.ok is False:
            workload = status.workload
            assert workload is not None
            failed = workload.model_copy(
                update={"state": WorkloadState.START_FAILED, "last_error": outcome.detail[:1024]}
            )
            undone = attempt.model_copy(update={"intent": AttemptIntent.NONE, "intent_time": None})
            status = status.model_copy(update={"workload": failed, "attempt": undone})
        return Settled(status, None if outcome.ok else 5.0, outcome.detail)
    if isinstance(action, DrainWorkload):
        if outcome.ok:
            workload = status.workload
            if workload is not None and workload.ended_at is None:
                status = status.model_copy(update={"workload": workload.model_copy(update={"ended_at": now})})
            status = status.model_copy(update={"attempt": attempt.model_copy(update={"drained": True})})
        return Settled(status, None if outcome.ok else 5.0, outcome.detail)
    assert isinstance(action, CaptureLogs)
    name = outcome.data.get("configMap")
    if name:
        status = status.model_copy(update={"attempt": attempt.model_copy(update={"logs": name})})
    return Settled(status, None, outcome.detail)


def _pause(answer: Answer, floor: float) -> float:
    return max(answer.retry_after or 0.0, floor)


def _words(call: str, answer: Answer) -> str:
    if answer.failure is None:
        return f"{call}: ok"
    request = f" (request {answer.request_id})" if answer.request_id else ""
    return f"{call}: {answer.failure}: {answer.detail[:300]}{request}"
