"""One pass of one SweepCell: from readings and the Hub to its status and its finalizer."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gpupod_operator.api.annotations import ABANDON_DATA
from gpupod_operator.api.base import dump
from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.names import CELL_FINALIZER, GPUPODS, SWEEPCELL_KIND, SWEEPCELLS
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.supported import unsupported_cell
from gpupod_operator.api.sweepcell import SweepCellSpec, SweepCellStatus
from gpupod_operator.core.artifacts import HubCommit, HubListing
from gpupod_operator.core.gpupod.permission import lost_since
from gpupod_operator.core.known import Fact, Known, Unknown
from gpupod_operator.core.sweepcell.decide import decide_cell
from gpupod_operator.core.sweepcell.scope import CellEvent, CellNeed, CellPlan, CellScope, PodView, Problem
from gpupod_operator.ports import (
    ApiConflict,
    ApiForbidden,
    ApiInvalid,
    ApiNotFound,
    ApiUnavailable,
    HubError,
    HubForbidden,
    HubRepoNotFound,
    HubUnauthorized,
)
from gpupod_operator.runtime.loop import Passed
from gpupod_operator.runtime.secret_values import SecretProblem
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.views import COMMITS, abandon_reason, hub_destination

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator.cells")

HUB_REASONS = {
    HubUnauthorized: Reason.HUB_UNAUTHORIZED,
    HubForbidden: Reason.HUB_FORBIDDEN,
    HubRepoNotFound: Reason.HUB_REPO_NOT_FOUND,
}


async def pass_cell(world: World, slot: Slot, raw: dict[str, Any]) -> Passed:
    """Run under the slot's lock; the mirror image of the pod's pass, with Hub reads as its only needs."""
    try:
        if not raw["metadata"].get("deletionTimestamp") and CELL_FINALIZER not in _finalizers(raw):
            raw = await _finalizer(world, slot, raw, present=True)
        return await _pass(world, slot, raw)
    except ApiConflict:
        try:
            world.store.put(SWEEPCELLS, await world.cluster.get(SWEEPCELLS, *slot.key))
        except (ApiNotFound, ApiUnavailable, ApiForbidden):
            return Passed(timedelta(seconds=2))
        return Passed(timedelta(0))
    except ApiNotFound:
        world.store.remove(SWEEPCELLS, slot.key, slot.uid)
        return Passed(None, vanished=True)
    except (ApiUnavailable, ApiForbidden) as error:
        slot.failures += 1
        log.warning("the API server does not take the status: %s", error, extra={"cell": "/".join(slot.key)})
        return Passed(timedelta(seconds=min(2**slot.failures, 60)))
    except ApiInvalid as error:
        log.warning("a status was refused for good: %s", error, extra={"cell": "/".join(slot.key)})
        return Passed(timedelta(minutes=1))


async def _pass(world: World, slot: Slot, raw: dict[str, Any]) -> Passed:
    spec = SweepCellSpec.model_validate(raw["spec"])
    before = SweepCellStatus.model_validate(raw.get("status") or {})
    plan = await _decide(world, slot, raw, spec, before)
    new = dump(plan.status)
    if new != dump(before):
        raw = await world.cluster.apply_status(
            SWEEPCELLS, *slot.key, new, resource_version=raw["metadata"]["resourceVersion"], uid=slot.uid
        )
        world.metrics.kube_writes.labels("cell-status").inc()
        world.store.put(SWEEPCELLS, raw)
        log.info("%s", plan.status.message, extra={"cell": "/".join(slot.key), "phase": str(plan.status.phase)})
    for event in plan.events:
        await _tell(world, slot, raw, event)
    slot.failures = 0
    if not plan.finalizer and raw["metadata"].get("deletionTimestamp"):
        log.info("may go: %s", plan.finalizer_why, extra={"cell": "/".join(slot.key)})
        await _finalizer(world, slot, raw, present=False)
        return Passed(None, release=True)
    return Passed(max(plan.next_check - world.clock.now(), timedelta(0)))


async def _decide(
    world: World, slot: Slot, raw: dict[str, Any], spec: SweepCellSpec, before: SweepCellStatus
) -> CellPlan:
    listing: Fact[HubListing] | None = None
    commits: Fact[tuple[HubCommit, ...]] | None = None
    token_problem: Problem | None = None
    hub_problem: Problem | None = None
    plan = CellPlan(before, world.clock.now())
    for _ in range(2):
        scope = _scope(world, slot, raw, spec, before, listing, commits, token_problem, hub_problem)
        plan = decide_cell(scope)
        if CellNeed.HUB not in plan.needs:
            return plan
        slot.hub_checked[slot.uid] = world.clock.now()
        try:
            token = await world.credentials.hub_token(slot.key[0], slot.uid, spec)
            where, only = hub_destination(spec), frozenset({slot.uid})
            listing = Known(await world.hub.list_prefix(where, token))
            # with nothing there, there is nothing that a commit could vouch for
            there = bool(listing.value.files)
            commits = Known(await world.hub.commits(where, token, limit=COMMITS, wanted=only) if there else ())
        except SecretProblem as problem:
            token_problem = Problem(problem.reason, str(problem))
            listing = commits = Unknown(str(problem))
        except HubError as error:
            listing = commits = Unknown(f"{spec.destination.repo}: {error}")
            reason = HUB_REASONS.get(type(error))
            hub_problem = hub_problem or (Problem(reason, f"{spec.destination.repo}: {error}") if reason else None)
    return plan


def _scope(
    world: World,
    slot: Slot,
    raw: dict[str, Any],
    spec: SweepCellSpec,
    before: SweepCellStatus,
    listing: Fact[HubListing] | None,
    commits: Fact[tuple[HubCommit, ...]] | None,
    token_problem: Problem | None,
    hub_problem: Problem | None,
) -> CellScope:
    metadata = raw["metadata"]
    pod_key = (metadata["namespace"], spec.pod_ref.name)
    read_on = before.observation.pod_id if before.observation is not None else None
    return CellScope(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        spec=spec,
        status=before,
        now=world.clock.now(),
        pod=pod_view(world, pod_key, read_on),
        deleting=bool(metadata.get("deletionTimestamp")),
        has_finalizer=CELL_FINALIZER in _finalizers(raw),
        abandoned=abandon_reason((metadata.get("annotations") or {}).get(ABANDON_DATA), read_on),
        agent=world.readings.view(pod_key, metadata["uid"]),
        listing=listing,
        commits=commits,
        overlapping=world.claims.rival(slot.key),
        token_problem=token_problem,
        hub_problem=hub_problem,
        not_built=", ".join(f.path for f in unsupported_cell(spec) if f.restricting) or None,
        hub_checked_at=slot.hub_checked.get(slot.uid),
    )


def pod_view(world: World, key: tuple[str, str], read_on: str | None) -> PodView:
    """The referenced GpuPod from committed status."""
    raw = world.store.get(GPUPODS, key)
    if raw is None:
        return PodView(exists=False, name=key[1])
    spec = GpuPodSpec.model_validate(raw.get("spec") or {})
    status = GpuPodStatus.model_validate(raw.get("status") or {})
    attempt = status.attempt
    gone = frozenset(h.pod_id for h in status.history if h.pod_id is not None)
    network = spec.volume.network if spec.volume is not None else None
    persistent = spec.volume.persistent if spec.volume is not None else None
    annotations = raw["metadata"].get("annotations") or {}
    pod = status.pod
    if pod is not None and (attempt is None or pod.id != attempt.pod_id):
        pod = None  # the summary of an earlier pod says nothing about this one
    return PodView(
        exists=True,
        name=key[1],
        attempt=attempt.id if attempt is not None else None,
        pod_id=attempt.pod_id if attempt is not None else None,
        started_at=pod.started_at if pod is not None else None,
        running=pod is None or pod.provider_status != "EXITED",
        contact_lost_at=lost_since(status),
        phase=str(status.phase) if status.phase is not None else None,
        ended=status.ended.reason if status.ended is not None else None,
        gone_ids=gone,
        released_ids=frozenset(status.released or ()),
        never_had_pod=(attempt is None or attempt.pod_id is None) and not gone,
        abandoned=abandon_reason(annotations.get(ABANDON_DATA), read_on),
        volume_paths=tuple(v.path for v in (network, persistent) if v is not None),
        network_volume_path=network.path if network is not None else None,
    )


async def _finalizer(world: World, slot: Slot, raw: dict[str, Any], *, present: bool) -> dict[str, Any]:
    written = await world.cluster.set_finalizer(
        SWEEPCELLS,
        *slot.key,
        CELL_FINALIZER,
        present=present,
        resource_version=raw["metadata"]["resourceVersion"],
    )
    world.metrics.kube_writes.labels("finalizer").inc()
    world.store.put(SWEEPCELLS, written)
    return written


async def _tell(world: World, slot: Slot, raw: dict[str, Any], event: CellEvent) -> None:
    try:
        await world.cluster.emit(
            {"apiVersion": "gpupod.dev/v1alpha1", **raw},
            kind=SWEEPCELL_KIND,
            reason=str(event.reason),
            message=event.message,
            warning=event.warning,
            action="Reconcile",
        )
        world.metrics.kube_writes.labels("event").inc()
    except (ApiForbidden, ApiNotFound, ApiUnavailable, ApiInvalid, ApiConflict) as error:
        world.metrics.events_lost.inc()
        log.warning("%s (the event could not be written: %s)", event.message, error, extra={"cell": "/".join(slot.key)})


def _finalizers(raw: dict[str, Any]) -> list[str]:
    return list(raw["metadata"].get("finalizers") or [])
