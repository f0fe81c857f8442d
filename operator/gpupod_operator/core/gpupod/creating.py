"""No pod is recorded and one is wanted: defer, wait, or plan one paid create (behaviour: Creating)."""

from __future__ import annotations

from typing import Any

from gpupod_operator.api.gpupod_status import Attempt, AttemptCause, AttemptIntent
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.burn import may_land_until
from gpupod_operator.core.gpupod.candidates import Choice, choose
from gpupod_operator.core.gpupod.ceilings import check_ceilings
from gpupod_operator.core.gpupod.drift import HASH_VERSION, spec_hash
from gpupod_operator.core.gpupod.limits import total_used_up
from gpupod_operator.core.gpupod.requests import build_request
from gpupod_operator.core.gpupod.rounds import exhausted, open_round, tried
from gpupod_operator.core.gpupod.scope import Act, Ask, Scope, Step, Wait
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.plan import CreatePod, Need


def create(scope: Scope, *, cause: AttemptCause, why: str) -> Step:
    """Plan one paid create, or say why not. Every create and its allowance are recorded in the attempt.

    Everything that can be known without a list of the account is settled first: objects that wait for an edit must not
    cost a list each. Right before the POST a fresh complete list shows no live pod of ours (law 2).
    """
    held = _not_allowed(scope) or total_used_up(scope) or _inputs(scope) or open_round(scope)
    if held is not None:
        return held
    catalog = scope.facts.catalog
    assert isinstance(catalog, Known)
    choice = choose(scope.spec, catalog.value, tried=tried(scope))
    if not isinstance(choice, Choice):
        return (
            exhausted(scope)
            if choice.reason is Reason.NO_CAPACITY
            else Wait(choice.reason, choice.message, stalled=True)
        )
    full = check_ceilings(scope, choice.price)
    if full is not None:
        return full
    if not scope.facts.listed_now:
        return Ask(frozenset({Need.LIST}))
    inventory = scope.facts.inventory
    assert inventory is not None
    if not inventory.fresh:
        return Wait(
            Reason.OBSERVATION_FAILED,
            f"no pod is created before one complete list of the account: {inventory.message}",
        )
    if _may_have_had_one(scope) and inventory.sequence < scope.policy.lists_for_gone:
        scope.wake_in(scope.policy.observe_every)
        return Wait(
            Reason.CREATE_UNKNOWN,
            "this object is older than what is known of it, as after a restore from a backup: its first pod is created "
            "once a second complete list shows none, either",
        )
    return _post(scope, choice, cause, why)


def _may_have_had_one(scope: Scope) -> bool:
    """No attempt is on record although the object is not new; a single list that lacks its pod may lie."""
    born = scope.identity.created_at
    return scope.status.attempt is None and born is not None and scope.now - born > scope.policy.create_settle


def _not_allowed(scope: Scope) -> Step | None:
    if not scope.spec.spend.allow_paid:
        scope.condition("Provisioned", False, Reason.NO_COMPUTE_AVAILABLE, "spend.allowPaid is false")
        scope.condition("SpendAllowed", False, Reason.NO_COMPUTE_AVAILABLE, "spend.allowPaid is false")
        return Wait(
            Reason.NO_COMPUTE_AVAILABLE,
            "spend.allowPaid is false: no pod is created or started. Set it to true to go on; nothing bills meanwhile",
            steady=True,
        )
    if not scope.spec.placement.candidates or not scope.spec.container.image:
        return Wait(
            Reason.SPEC_INCOMPLETE,
            "placement.candidates and container.image are needed to create a pod: add them",
            stalled=True,
        )
    return None


def _inputs(scope: Scope) -> Step | None:
    """Secrets, catalog and network volume are sane before the first POST."""
    facts = scope.facts
    network = scope.spec.volume.network if scope.spec.volume is not None else None
    asked: dict[Need, Known[Any] | Unknown | None] = {Need.CATALOG: facts.catalog, Need.SECRETS: facts.secrets}
    if network is not None:
        asked[Need.VOLUME] = facts.volume
    missing = frozenset(need for need, fact in asked.items() if fact is None)
    if missing:
        return Ask(missing)
    for fact in asked.values():
        if isinstance(fact, Unknown):
            return Wait(Reason.OBSERVATION_FAILED, f"no pod is created before this can be read: {fact.why}")
    assert isinstance(facts.secrets, Known)
    report = facts.secrets.value
    if report.problem is not None:
        return Wait(report.reason or Reason.SECRET_NOT_FOUND, report.problem, stalled=True)
    if network is not None and isinstance(facts.volume, Known) and facts.volume.value is None:
        return Wait(
            Reason.VOLUME_NOT_FOUND,
            f"network volume {network.volume_id} is not in this account: correct spec.volume.network.volumeId",
            stalled=True,
        )
    return None


def _post(scope: Scope, choice: Choice, cause: AttemptCause, why: str) -> Step:
    before = scope.status.attempt
    nonce = before.nonce if before is not None and before.nonce else scope.entropy[:10]
    spec, identity = scope.spec, scope.identity
    allowed = f"{why}; allowed by spec.spend.allowPaid at generation {identity.generation}; {choice.why}"
    scope.put(
        attempt=Attempt(
            id=before.id if before is not None and before.pod_id is None and before.id else scope.entropy[10:18],
            nonce=nonce,
            retired_nonces=before.retired_nonces if before is not None else None,
            may_land_until=may_land_until(before),
            per_hour=choice.price,
            accrued_before=before.accrued_before if before is not None else None,
            candidate=choice.candidate,
            cause=cause,
            reason=allowed[:512],
            generation=identity.generation,
            intent=AttemptIntent.CREATE,
            intent_time=scope.now,
            backoff=before.backoff if before is not None else None,
            refusals=before.refusals if before is not None else None,
            waiting_since=(before.waiting_since if before is not None else None) or scope.now,
            spec_hash=spec_hash(spec),
            hash_version=HASH_VERSION,
        ),
        pod=None,
        endpoint=None,
    )
    request = build_request(scope, choice, nonce)
    return Act(CreatePod(request, allowed), Reason.CREATING, f"creating a pod: {choice.why}")
