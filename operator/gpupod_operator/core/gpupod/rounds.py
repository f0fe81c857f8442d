"""Rounds of creates: each candidate is asked once, then everybody waits, bounded by `placement.capacityWait`."""

from __future__ import annotations

from datetime import datetime

from gpupod_operator.api.annotations import RECONCILE_AT
from gpupod_operator.api.gpupod_status import Attempt, Backoff, Refusal
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.times import parse_time
from gpupod_operator.core.gpupod.backoff import backoff_delay, jittered
from gpupod_operator.core.gpupod.refusals import FOR_A_PERSON, REMEDIES, reason_of
from gpupod_operator.core.gpupod.scope import Scope, Step, Wait

UNDONE = "Undone"
"""A refusal of ours: the pod that the candidate gave was not what was asked for."""


def open_round(scope: Scope) -> Step | None:
    """None: a candidate may be asked. A changed spec or `reconcile-at` starts anew at once."""
    attempt = scope.status.attempt
    if attempt is None or attempt.pod_id is not None:
        return None
    if _asked_anew(scope, attempt):
        scope.put_attempt(
            refusals=None, backoff=None, waiting_since=None, generation=scope.identity.generation, candidate=None
        )
        return None
    backoff = attempt.backoff
    if backoff is None or backoff.until is None:
        return None
    if scope.now < backoff.until:
        return waiting(scope, backoff.until)
    scope.put_attempt(refusals=None, backoff=Backoff(failures=backoff.failures))
    return None


def tried(scope: Scope) -> tuple[int, ...]:
    """Indices of the candidates that were asked in this round."""
    attempt = scope.status.attempt
    return tuple(r.index for r in attempt.refusals) if attempt is not None and attempt.refusals else ()


def exhausted(scope: Scope) -> Step:
    """Every candidate refused. The same non-capacity text everywhere is our mistake; otherwise wait, bounded."""
    attempt = scope.status.attempt
    assert attempt is not None and attempt.refusals
    details = {r.detail for r in attempt.refusals}
    if len(details) == 1 and all(r.failure == "Invalid" for r in attempt.refusals):
        return Wait(
            Reason.INVALID_REQUEST,
            f"RunPod refuses the request for every candidate: {next(iter(details))}. Correct the spec; nothing is "
            f"retried until it changes",
            stalled=True,
        )
    started = attempt.waiting_since or scope.now
    limit = started + scope.spec.placement.capacity_wait
    if scope.now >= limit:
        return Wait(
            Reason.CAPACITY_WAIT_EXHAUSTED,
            f"no candidate gave a pod since {started:%Y-%m-%d %H:%M}Z, longer than placement.capacityWait. Change the "
            f"placement or set {RECONCILE_AT} to a later time; nothing bills meanwhile",
            stalled=True,
        )
    failures = (attempt.backoff.failures if attempt.backoff is not None else 0) or 0
    delay = jittered(backoff_delay(failures, scope.policy.backoff_first, scope.policy.backoff_max), scope)
    until = min(scope.now + delay, limit)
    scope.put_attempt(backoff=Backoff(failures=failures + 1, until=until))
    return waiting(scope, until)


def waiting(scope: Scope, until: datetime) -> Step:
    """Why nothing is created now, in the vendor's own words."""
    attempt = scope.status.attempt
    refusals = attempt.refusals if attempt is not None and attempt.refusals else ()
    asked = ", ".join(f"{r.gpu_type}: {r.detail}" for r in refusals) or "the last create was refused"
    standing = next((reason_of(r.failure) for r in refusals if reason_of(r.failure) is not Reason.ACT_FAILED), None)
    if any(r.failure == "InsufficientBalance" for r in refusals):
        reason, remedy = Reason.INSUFFICIENT_BALANCE, "top up the account"
    elif standing is not None:
        reason, remedy = standing, REMEDIES[standing]
    elif refusals and all(r.failure == UNDONE for r in refusals):
        reason, remedy = Reason.PRICE_OVER_CAP, "raise the cap, or name other candidates"
    else:
        reason, remedy = Reason.NO_CAPACITY, "a freed GPU, or more candidates, unblocks it"
    scope.wake_at(until)
    return Wait(
        reason,
        f"waiting to create again ({asked[:300]}); {remedy}; nothing bills meanwhile",
        until=until,
        stalled=standing in FOR_A_PERSON,
    )


def remember_undone(scope: Scope, undone: Attempt) -> None:
    """The pod of this candidate was undone and is gone: ask the others, then wait. Never create and undo in a loop."""
    candidate = undone.candidate
    refusal = Refusal(
        index=candidate.index if candidate is not None and candidate.index is not None else 0,
        gpu_type=candidate.gpu_type if candidate is not None else None,
        failure=UNDONE,
        detail="what was delivered was over the cap or not what was asked for",
    )
    scope.put_attempt(
        refusals=(*(undone.refusals or ()), refusal)[-16:],
        # a create that was answered cleared the backoff: what was undone in a row makes the pauses grow all the same
        backoff=Backoff(failures=_undone_in_a_row(scope) - 1),
        waiting_since=undone.waiting_since or scope.now,
        generation=undone.generation,
    )


def _undone_in_a_row(scope: Scope) -> int:
    past = scope.status.history or ()
    return next((n for n, entry in enumerate(reversed(past)) if entry.reason != UNDONE), len(past))


def _asked_anew(scope: Scope, attempt: Attempt) -> bool:
    """The spec changed since the round was allowed, or a person asks for another try after the last one."""
    if not attempt.refusals:
        return False
    if attempt.generation is not None and attempt.generation != scope.identity.generation:
        return True
    asked = scope.identity.annotations.get(RECONCILE_AT)
    if asked is None or attempt.intent_time is None:
        return False
    try:
        return parse_time(asked) > attempt.intent_time
    except ValueError:
        return False
