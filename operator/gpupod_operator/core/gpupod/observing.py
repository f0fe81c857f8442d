"""From what the provider shows to what we hold about the recorded pod: presence, pod summary, absence proof."""

from __future__ import annotations

from gpupod_operator.api.gpupod_status import PodStatus
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.scope import Ask, Presence, Scope, Step
from gpupod_operator.core.known import Known
from gpupod_operator.core.plan import Need
from gpupod_operator.core.provider import InventoryState, ProviderPod, ProviderState


def observe(scope: Scope) -> Step | None:
    """Set presence, pod and the status fields that mirror it. Asks for a GET around absence."""
    inventory = scope.facts.inventory
    if inventory is None:
        return Ask(frozenset({Need.LIST}))
    _provider_observed(scope)
    pod_id = scope.pod_id
    if pod_id is None:
        scope.presence = Presence.NONE
        return None
    get = scope.facts.pod
    if isinstance(get, Known) and get.value is not None and get.value.live:
        return _present(scope, get.value)
    listed = inventory.pods.get(pod_id)
    if inventory.state is not InventoryState.COMPLETE:
        scope.presence = Presence.UNKNOWN
        scope.pod = listed or scope.facts.recent_pod
        return None
    if listed is not None and listed.live and not (isinstance(get, Known) and get.value is None):
        return _present(scope, listed)
    return _absent(scope, listed)


def _provider_observed(scope: Scope) -> None:
    inventory = scope.facts.inventory
    assert inventory is not None
    if inventory.state is InventoryState.COMPLETE:
        scope.condition("ProviderObserved", True, Reason.OBSERVED, "the account's pods are listed completely")
    elif inventory.state is InventoryState.SUSPECT:
        scope.condition("ProviderObserved", False, Reason.OBSERVATION_SUSPECT, inventory.message)
    else:
        scope.condition("ProviderObserved", False, Reason(inventory.reason), inventory.message)


def _present(scope: Scope, pod: ProviderPod) -> Step | None:
    scope.presence = Presence.PRESENT
    scope.pod = pod
    mirror(scope, pod)
    attempt = scope.status.attempt
    if attempt is not None and not attempt.seen:
        scope.put_attempt(seen=True)
    return None


def _absent(scope: Scope, listed: ProviderPod | None) -> Step | None:
    """Missing from a complete list, or TERMINATED in it: live until a GET says 404 and two lists agree (law 4)."""
    attempt = scope.status.attempt
    inventory = scope.facts.inventory
    assert attempt is not None and attempt.pod_id is not None and inventory is not None
    created = attempt.created_at or attempt.intent_time
    young = not attempt.seen and created is not None and scope.now - created < scope.policy.fresh_grace
    if young:
        # A pod just created may be missing from lists and answer 404 for half a minute. It is ours and it bills.
        scope.presence = Presence.FRESH
        scope.pod = scope.facts.recent_pod
        if scope.pod is not None:
            mirror(scope, scope.pod)
        scope.wake_in(scope.policy.observe_every)
        return None
    get = scope.facts.pod
    if get is None:
        return Ask(frozenset({Need.POD}))
    scope.pod = listed or scope.facts.recent_pod
    missed = inventory.absent.get(attempt.pod_id, 0) if listed is None else 0
    verified = isinstance(scope.facts.account, Known) and scope.facts.account.value.verified
    # Without the account id a key of another team looks like an empty account: demand twice the observations.
    wanted = scope.policy.lists_for_gone * (1 if verified else 2)
    if isinstance(get, Known) and get.value is None and missed >= wanted:
        scope.presence = Presence.GONE
    else:
        scope.presence = Presence.MISSING
        scope.wake_in(scope.policy.observe_every)
    return None


def mirror(scope: Scope, pod: ProviderPod) -> None:
    """Copy what users read of the pod into status; unchanged values change nothing."""
    before = scope.status.pod
    cost = pod.cost_per_hour
    if pod.state is ProviderState.EXITED:
        # the vendor shows 0 for a stopped pod; its last running price stays readable in cost
        cost = pod.cost_per_hour if pod.cost_per_hour is not None else (before.cost_per_hour if before else None)
    scope.put(
        pod=PodStatus(
            id=pod.id,
            name=pod.name,
            gpu_summary=_gpu_summary(scope, pod),
            gpu_type=pod.gpu_type_id or (before.gpu_type if before else None),
            count=pod.gpu_count if pod.gpu_count is not None else (before.count if before else None),
            data_center=pod.data_center or (before.data_center if before else None),
            host_hint=pod.host_hint or (before.host_hint if before else None),
            cost_per_hour=cost,
            started_at=pod.started_at or (before.started_at if before and before.id == pod.id else None),
            provider_status=pod.raw_state,
        )
    )


def _gpu_summary(scope: Scope, pod: ProviderPod) -> str | None:
    attempt = scope.status.attempt
    short = attempt.candidate.gpu_type if attempt is not None and attempt.candidate is not None else None
    name = short or pod.gpu_type_id
    if name is None:
        return scope.status.pod.gpu_summary if scope.status.pod is not None else None
    return f"{pod.gpu_count if pod.gpu_count is not None else 1}x {name}"
