"""One pass of one GpuPod: snapshot, decide, gather, decide again, write the intent, act, write the answer."""

from __future__ import annotations

import dataclasses
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gpupod_operator.api.base import dump
from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.names import GPUPOD_KIND, GPUPODS
from gpupod_operator.api.times import parse_time
from gpupod_operator.core.gpupod.decide import decide
from gpupod_operator.core.gpupod.scope import Identity, Scope
from gpupod_operator.core.gpupod.settle import Settled
from gpupod_operator.core.plan import CreatePod, Need, Plan, StartPod, Transition
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable
from gpupod_operator.runtime.executor import Executor, NotLeading
from gpupod_operator.runtime.gather import Gatherer
from gpupod_operator.runtime.reaping import came_into_use
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.snapshot import follow_pod, room_of, snapshot

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator.decisions")

ROUNDS = 8
"""Gathering rounds of one pass; the longest chain of needs is five (account, list, pod, cells and visit, listings)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Passed:
    """How a pass ended: when to look again (None: when woken), and whether the finalizer may go."""

    again: timedelta | None
    release: bool = False
    vanished: bool = False


async def pass_once(world: World, slot: Slot, raw: dict[str, Any]) -> Passed:
    """Run under the slot's lock. Errors of the API server end the pass and are retried; nothing is half-written.

    The caller passes the newest object that it knows; a conflict reads a newer one and starts over.
    """
    slot.pass_began = world.clock.now()
    try:
        return await _pass(world, slot, raw)
    except ApiConflict:
        return await _reread(world, slot)
    except ApiNotFound:
        world.store.remove(GPUPODS, slot.key, slot.uid)
        return Passed(None, vanished=True)
    except (ApiUnavailable, ApiForbidden) as error:
        slot.failures += 1
        log.warning("the API server does not take the status: %s", error, extra={"object": _name(slot)})
        return Passed(timedelta(seconds=min(2**slot.failures, 60)))
    except ApiInvalid as error:
        # ours: a status that the schema refuses. Nothing is acted on, because the intent could not be recorded.
        log.warning("a status was refused for good, nothing is acted on: %s", error, extra={"object": _name(slot)})
        return Passed(timedelta(minutes=1))
    finally:
        slot.pass_began = None


async def _reread(world: World, slot: Slot) -> Passed:
    try:
        fresh = await world.cluster.get(GPUPODS, *slot.key)
    except ApiNotFound:
        world.store.remove(GPUPODS, slot.key, slot.uid)
        return Passed(None, vanished=True)
    except (ApiUnavailable, ApiForbidden):
        return Passed(timedelta(seconds=2))
    if fresh["metadata"]["uid"] != slot.uid:
        return Passed(None, vanished=True)
    world.store.put(GPUPODS, fresh)
    return Passed(timedelta(0))


async def _pass(world: World, slot: Slot, raw: dict[str, Any]) -> Passed:
    parsed = world.registrations.parsed(raw)
    spec, before = parsed.spec, parsed.status
    plan, scope = await _decide(world, slot, raw, spec, before)
    if isinstance(plan.action, (CreatePod, StartPod)) and not _promised(world, slot, plan):
        return Passed(timedelta(0))
    try:
        raw = await _commit(world, slot, raw, before, plan.status)
    finally:
        world.commitments.release(slot.uid)  # the intent speaks for itself, or there is none
    _tell(world, raw, plan.transitions)
    _log(slot, plan)
    slot.failures = 0
    if plan.action is None:
        return Passed(plan.wake, release=plan.release)
    act = type(plan.action).__name__
    try:
        settled = await Executor(world, slot, raw, spec).perform(plan.action, plan.status)
    except NotLeading:
        log.warning("not leading any more: %s was not sent", act, extra={"object": _name(slot), "act": act})
        return Passed(timedelta(seconds=1))
    told = {"object": _name(slot), "act": act, "pod": _pod(settled.status)}
    log.info("%s", settled.sentence or f"{act} done", extra=told)
    after = _after_create(world, slot, scope, settled) if isinstance(plan.action, CreatePod) else None
    if after is None:
        await _commit(world, slot, raw, plan.status, settled.status)
        return Passed(timedelta(seconds=settled.pause or 0))
    raw = await _commit(world, slot, raw, plan.status, after.status)
    follow_pod(world, slot, after.status)
    _tell(world, raw, after.transitions)
    _log(slot, after)
    return Passed(after.wake)


def _promised(world: World, slot: Slot, plan: Plan) -> bool:
    """Room under the ceilings is taken in the moment of the decision; False: somebody was faster, decide anew."""
    assert plan.status.attempt is not None
    if slot.account is None:
        return True  # the executor will not find it, either
    account, price = slot.account, plan.status.attempt.per_hour
    return world.commitments.take(slot.uid, account.identity.id, account.observer.inventory, price) is None


def _after_create(world: World, slot: Slot, scope: Scope, settled: Settled) -> Plan | None:
    """What the next pass would conclude from a pod that was just made, so that its id and this are one write.

    None where that pass has more to do than to conclude, and after every create that made no pod.
    """
    if settled.pause is not None or _pod(settled.status) is None:
        return None
    facts = dataclasses.replace(scope.facts, recent_pod=slot.recent_pod, listed_now=False, new_list=False)
    now = world.clock.now()
    try:
        plan = decide(Scope(scope.identity, scope.spec, settled.status, facts, now, world.policy, world.entropy()))
    except Exception:
        # the next pass will fail as loudly; what counts here is that the pod's id gets written
        log.exception("no conclusion from a create; the pod is recorded", extra={"object": _name(slot)})
        return None
    return None if plan.needs or plan.action is not None or plan.release else plan


async def _decide(
    world: World, slot: Slot, raw: dict[str, Any], spec: GpuPodSpec, before: GpuPodStatus
) -> tuple[Plan, Scope]:
    facts = snapshot(world, slot, raw, spec, before)
    gatherer = Gatherer(world, slot, raw, spec)
    facts = await gatherer.gather(facts, frozenset({Need.ACCOUNT}), before)
    follow_pod(world, slot, before)
    metadata = raw["metadata"]
    identity = Identity(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        instance=world.instance,
        deleting=bool(metadata.get("deletionTimestamp")),
        annotations=metadata.get("annotations") or {},
        created_at=parse_time(metadata["creationTimestamp"]) if metadata.get("creationTimestamp") else None,
    )
    entropy = world.entropy()
    asked: set[Need] = set()
    status = before
    plan = Plan(status=before)
    for _ in range(ROUNDS):
        facts = dataclasses.replace(facts, room=room_of(world, slot))  # of this moment: nothing is awaited until take()
        scope = Scope(identity, spec, before, facts, world.clock.now(), world.policy, entropy)
        plan = decide(scope)
        if not plan.needs:
            slot.sequence = facts.inventory.sequence if facts.inventory is not None else slot.sequence
            return plan, scope
        if plan.needs <= asked and Need.SHELL not in plan.needs:
            raise RuntimeError(f"the decision asks for {sorted(plan.needs)} again and again")
        asked |= plan.needs
        # a decision may have moved the endpoint or taken a pod over before it asked: gather for what it now holds
        status = scope.status
        facts = await gatherer.gather(facts, plan.needs, status)
    raise RuntimeError(f"no decision after {ROUNDS} rounds; last needs {sorted(plan.needs)}")


async def _commit(
    world: World, slot: Slot, raw: dict[str, Any], before: GpuPodStatus, after: GpuPodStatus
) -> dict[str, Any]:
    """Write the status if it differs. Refused when the object changed since it was read (law 2 needs this)."""
    if after == before:  # the common case, at a tenth of the cost of two dumps
        return raw
    new = dump(after)
    if new == dump(before):
        return raw
    used = came_into_use(before, after)
    if used is not None and slot.account is not None:
        listed = slot.account.observer.inventory.pods
        await world.fleet.note_used(slot.account.identity.id, used, world.clock.now(), listed)
    written = await world.cluster.apply_status(
        GPUPODS, *slot.key, new, resource_version=raw["metadata"]["resourceVersion"], uid=slot.uid
    )
    world.metrics.kube_writes.labels("status").inc()
    world.store.put(GPUPODS, written)
    return written


def _tell(world: World, raw: dict[str, Any], transitions: tuple[Transition, ...]) -> None:
    for item in transitions:
        world.teller.tell(raw, GPUPOD_KIND, item)


def _log(slot: Slot, plan: Plan) -> None:
    """One line per decision that says something new."""
    line = f"{plan.status.phase}: {plan.sentence}"
    if line == slot.sentence:
        return
    slot.sentence = line
    attempt = plan.status.attempt
    log.info(
        "%s",
        plan.sentence,
        extra={
            "object": _name(slot),
            "phase": str(plan.status.phase),
            "attempt": attempt.id if attempt is not None else None,
            "pod": attempt.pod_id if attempt is not None else None,
            "act": type(plan.action).__name__ if plan.action is not None else None,
        },
    )


def _name(slot: Slot) -> str:
    return "/".join(slot.key)


def _pod(status: GpuPodStatus) -> str | None:
    return status.attempt.pod_id if status.attempt is not None else None
