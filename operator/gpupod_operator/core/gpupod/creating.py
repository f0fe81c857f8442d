"""No pod is recorded: settle what may have happened, then adopt, defer, wait or create (behaviour: Creating)."""

from __future__ import annotations

from datetime import datetime, timedelta

from gpupod_operator.api.gpupod_status import Attempt, AttemptCause, AttemptIntent, Backoff
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.candidates import Choice, choose
from gpupod_operator.core.gpupod.drift import HASH_VERSION, spec_hash
from gpupod_operator.core.gpupod.scope import Act, Ask, Scope, Step, Wait
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.ownership import Foreign, owner_stamp
from gpupod_operator.core.plan import CreatePod, Need
from gpupod_operator.core.provider import CreateRequest, Stamp


def settle_unknown_create(scope: Scope) -> Step | None:
    """An intent without a pod id: the create may have happened. Look on complete lists until the window is over.

    Pods found by nonce were taken over before this runs. When nothing appears the nonce is retired: a pod that shows
    up later with it is a ghost, known on any later list.
    """
    attempt = scope.status.attempt
    if attempt is None or attempt.pod_id is not None or attempt.intent is not AttemptIntent.CREATE:
        return None
    since = attempt.unknown_since or attempt.intent_time or scope.now
    if attempt.unknown_since is None:
        scope.put_attempt(unknown_since=since)
    if not scope.facts.listed_now:
        return Ask(frozenset({Need.LIST}))
    inventory = scope.facts.inventory
    assert inventory is not None
    due = since + scope.policy.create_settle
    if inventory.fresh and scope.now >= due:
        retired = (*(attempt.retired_nonces or ()), *((attempt.nonce,) if attempt.nonce else ()))
        scope.put_attempt(
            intent=AttemptIntent.NONE, intent_time=None, unknown_since=None, nonce=None, retired_nonces=retired[-10:]
        )
        return None
    scope.wake_in(scope.policy.observe_every)
    return Wait(
        Reason.CREATE_UNKNOWN,
        f"the outcome of the create (nonce {attempt.nonce}) is unknown: complete lists are searched for it before "
        f"anything is created again; a pod found is taken over. It may bill meanwhile",
        until=due,
    )


def adopt(scope: Scope) -> Step | None:
    """Take over exactly the pod that `spec.adopt.podId` names. Once it was seen and is gone, it has no effect."""
    wanted = scope.adopt_id
    if wanted is None or wanted in (scope.status.spent_adoptions or ()):
        return None
    if scope.facts.rivals:
        return Wait(
            Reason.ADOPT_CONFLICT,
            f"pod {wanted} is already named by GpuPod {scope.facts.rivals[0]}: remove spec.adopt in one of them",
            stalled=True,
        )
    if not scope.facts.listed_now:
        return Ask(frozenset({Need.LIST}))
    inventory = scope.facts.inventory
    assert inventory is not None
    if not inventory.fresh:
        return Wait(Reason.OBSERVATION_FAILED, f"waiting for a complete list before adopting pod {wanted}")
    pod = inventory.pods.get(wanted)
    if pod is None or not pod.live:
        return Wait(
            Reason.ADOPT_NOT_FOUND,
            f"no pod {wanted} is in this account: nothing is created instead. Correct spec.adopt.podId, or remove it "
            f"and give placement.candidates",
            stalled=True,
        )
    handle = scope.handle(pod)
    if isinstance(handle, Foreign):
        return Wait(Reason.ADOPT_FOREIGN, f"{handle.why}; it is not touched. Remove spec.adopt", stalled=True)
    before = scope.status.attempt
    scope.put(
        attempt=Attempt(
            id=scope.entropy[:8],
            retired_nonces=before.retired_nonces if before is not None else None,
            cause=AttemptCause.ADOPT,
            reason=f"spec.adopt names pod {wanted}",
            generation=scope.identity.generation,
            intent=AttemptIntent.NONE,
            pod_id=wanted,
            created_at=pod.created_at or scope.now,
            seen=True,
        ),
        spent_adoptions=(*(scope.status.spent_adoptions or ()), wanted)[-10:],
    )
    return Wait(Reason.TAKEN_OVER, f"pod {wanted} is adopted", until=scope.now)


def create(scope: Scope, *, cause: AttemptCause, why: str) -> Step:
    """Plan one paid create, or say why not. Every create and its allowance are recorded in the attempt."""
    blocked = _not_allowed(scope)
    if blocked is not None:
        return blocked
    asked = _inputs(scope)
    if asked is not None:
        return asked
    catalog = scope.facts.catalog
    assert isinstance(catalog, Known)
    attempt = scope.status.attempt
    refusals = attempt.refusals if attempt is not None and attempt.refusals else ()
    backoff = attempt.backoff if attempt is not None else None
    if backoff is not None and backoff.until is not None and scope.now < backoff.until:
        return _waiting(scope, backoff.until)
    if backoff is not None and backoff.until is not None and refusals:
        refusals = ()
        scope.put_attempt(refusals=None)
    choice = choose(scope.spec, catalog.value, tried=tuple(r.index for r in refusals))
    if isinstance(choice, Choice):
        return _post(scope, choice, cause, why)
    if choice.reason is Reason.NO_CAPACITY:
        return _exhausted(scope)
    return Wait(choice.reason, choice.message, stalled=True)


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
    """Everything is sane before the first POST; a fresh complete list shows no live pod of ours (law 2)."""
    facts = scope.facts
    missing = set()
    if not facts.listed_now:
        missing.add(Need.LIST)
    if facts.catalog is None:
        missing.add(Need.CATALOG)
    if facts.secrets is None:
        missing.add(Need.SECRETS)
    network = scope.spec.volume.network if scope.spec.volume is not None else None
    if network is not None and facts.volume is None:
        missing.add(Need.VOLUME)
    if missing:
        return Ask(frozenset(missing))
    inventory = facts.inventory
    assert inventory is not None
    if not inventory.fresh:
        return Wait(
            Reason.OBSERVATION_FAILED,
            f"no pod is created before one complete list of the account: {inventory.message}",
        )
    if isinstance(facts.secrets, Unknown):
        return Wait(Reason.OBSERVATION_FAILED, facts.secrets.why)
    assert isinstance(facts.secrets, Known)
    if facts.secrets.value.problem is not None:
        return Wait(facts.secrets.value.reason or Reason.SECRET_NOT_FOUND, facts.secrets.value.problem, stalled=True)
    if isinstance(facts.catalog, Unknown):
        return Wait(Reason.OBSERVATION_FAILED, f"the GPU catalog cannot be read: {facts.catalog.why}")
    if network is not None:
        if isinstance(facts.volume, Unknown):
            return Wait(Reason.OBSERVATION_FAILED, f"network volume {network.volume_id}: {facts.volume.why}")
        if isinstance(facts.volume, Known) and facts.volume.value is None:
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


def build_request(scope: Scope, choice: Choice, nonce: str) -> CreateRequest:
    """The create call's body without environment values. Count, ports and disk are always sent."""
    spec, identity = scope.spec, scope.identity
    container, placement = spec.container, spec.placement
    assert container.image is not None
    volume = spec.volume
    network = volume.network if volume is not None else None
    persistent = volume.persistent if volume is not None else None
    centers = tuple(choice.candidate.data_centers or ())
    if network is not None and isinstance(scope.facts.volume, Known) and scope.facts.volume.value is not None:
        centers = (scope.facts.volume.value.data_center,)
    return CreateRequest(
        # the vendor's own limit is not documented for v2; peers keep to 60
        name=f"{identity.name[:48]}-{nonce}",
        image=container.image,
        gpu_type_id=choice.offer.id,
        gpu_count=choice.candidate.count or 1,
        cloud=(choice.candidate.cloud or "Secure").upper(),
        data_centers=centers,
        disk_gb=container.disk_gb,
        ports=tuple(container.ports),
        stamp=Stamp(owner_stamp(identity.instance, identity.namespace, identity.name, identity.uid), nonce),
        entrypoint=tuple(container.entrypoint or ()),
        command=tuple(container.cmd or ()),
        registry=container.registry,
        persistent_gb=persistent.size_gb if persistent is not None else None,
        persistent_path=persistent.path if persistent is not None else None,
        network_volume_id=network.volume_id if network is not None else None,
        network_volume_path=network.path if network is not None else None,
        min_cuda_version=placement.min_cuda_version,
        min_ram_per_gpu_gb=placement.min_ram_per_gpu_gb,
        min_vcpu_per_gpu=placement.min_vcpu_per_gpu,
    )


def _exhausted(scope: Scope) -> Step:
    """Every candidate refused. The same non-capacity text everywhere is our mistake; otherwise wait, bounded."""
    attempt = scope.status.attempt
    assert attempt is not None and attempt.refusals
    details = {r.detail for r in attempt.refusals if r.failure == "Invalid"}
    if len(details) == 1 and all(r.failure == "Invalid" for r in attempt.refusals):
        return Wait(
            Reason.INVALID_REQUEST,
            f"RunPod refuses the request for every candidate: {next(iter(details))}. Correct the spec; nothing is "
            f"retried until it changes",
            stalled=True,
        )
    failures = (attempt.backoff.failures if attempt.backoff is not None else 0) or 0
    until = scope.now + jittered(backoff_delay(failures, scope.policy.backoff_first, scope.policy.backoff_max), scope)
    started = attempt.waiting_since or scope.now
    limit = started + scope.spec.placement.capacity_wait
    if scope.now >= limit:
        scope.put_attempt(backoff=None)
        return Wait(
            Reason.CAPACITY_WAIT_EXHAUSTED,
            f"no capacity on any candidate since {started:%Y-%m-%d %H:%M}Z, longer than placement.capacityWait. Change "
            f"the placement or set gpupod.dev/reconcile-at; nothing bills meanwhile",
            stalled=True,
        )
    until = min(until, limit)
    scope.put_attempt(backoff=Backoff(failures=failures + 1, until=until))
    return _waiting(scope, until)


def backoff_delay(failures: int, first: timedelta, most: timedelta) -> timedelta:
    """30 s doubling to 10 min."""
    return min(first * (1 << min(failures, 10)), most)


def jittered(delay: timedelta, scope: Scope) -> timedelta:
    """75 to 100 % of the delay, from the pass's own randomness, so that a fleet does not retry in step."""
    share = int(scope.entropy[-2:], 16) / 255
    return timedelta(seconds=delay.total_seconds() * (0.75 + 0.25 * share))


def _waiting(scope: Scope, until: datetime) -> Step:
    attempt = scope.status.attempt
    refusals = attempt.refusals if attempt is not None and attempt.refusals else ()
    asked = ", ".join(f"{r.gpu_type}: {r.detail}" for r in refusals) or "the last create was refused"
    balance = any(r.failure == "InsufficientBalance" for r in refusals)
    reason = Reason.INSUFFICIENT_BALANCE if balance else Reason.NO_CAPACITY
    remedy = "top up the account" if balance else "a freed GPU, or more candidates, unblocks it"
    scope.wake_at(until)
    return Wait(reason, f"waiting to create again ({asked[:300]}); {remedy}; nothing bills meanwhile", until=until)
