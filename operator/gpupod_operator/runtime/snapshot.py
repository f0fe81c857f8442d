"""What a pass starts from."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.names import GPUPODS
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import SweepCellStatus
from gpupod_operator.core.gpupod.scope import Facts
from gpupod_operator.core.room import Room
from gpupod_operator.core.sweepcell.summary import cells_summary
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.store import key_of
from gpupod_operator.runtime.views import digest_of, target_of

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World


def snapshot(world: World, slot: Slot, raw: dict[str, Any], spec: GpuPodSpec, before: GpuPodStatus) -> Facts:
    """What is known before anything is asked: the watch, the observer, the last visit."""
    account = world.account_of_slot(slot)
    inventory = account.observer.inventory if account is not None else None
    if inventory is not None and inventory.complete_at is None:
        inventory = None  # nothing was ever listed: ask for a list
    cells = world.store.cells_of(slot.key)
    statuses = [SweepCellStatus.model_validate(c.get("status") or {}) for c in cells]
    return Facts(
        inventory=inventory,
        new_list=inventory is not None and inventory.sequence != slot.sequence,
        recent_pod=slot.recent_pod if slot.recent_pod is not None and _is(before, slot.recent_pod.id) else None,
        shell=slot.reading if slot.reading_of == _target(before, spec) else None,
        declared_cells=len(cells),
        cells_summary=cells_summary(statuses) if cells or before.cells is not None else None,
        rivals=_rivals(world, raw, spec),
        registration=functools.partial(_registration, world, raw),
        cells_digest=digest_of(cells, world.credentials.token_print),
        install=slot.install,
        ghost_deletes=slot.ghost_deletes,
        agent_tree=world.agent_tree,
        room=room_of(world, slot),
    )


def room_of(world: World, slot: Slot) -> Room | None:
    """What the ceilings leave to the object at this moment; None without ceilings, and before its account is known."""
    if slot.account is None:
        return None
    account = slot.account
    return world.commitments.room(slot.uid, slot.key[0], account.identity.id, account.observer.inventory)


def follow_pod(world: World, slot: Slot, before: GpuPodStatus) -> None:
    """Let the observer count absences of the recorded pod, and name its changes to this object."""
    pod_id = before.attempt.pod_id if before.attempt is not None else None
    if slot.account is not None and slot.pod_id != pod_id:
        if slot.pod_id is not None:
            slot.account.observer.untrack(slot.pod_id)
        if pod_id is not None:
            slot.account.observer.track(pod_id)
        world.slots.bind(slot, pod_id)


def _is(status: GpuPodStatus, pod_id: str) -> bool:
    return status.attempt is not None and status.attempt.pod_id == pod_id


def _target(status: GpuPodStatus, spec: GpuPodSpec) -> tuple[str, str, int] | None:
    target = target_of(status, spec)
    return (target.pod_id, target.host, target.port) if target is not None else None


def _rivals(world: World, raw: dict[str, Any], spec: GpuPodSpec) -> tuple[str, ...]:
    """Older objects anywhere in the cluster that name the same pod id."""
    if spec.adopt is None:
        return ()
    mine = (raw["metadata"]["creationTimestamp"], raw["metadata"]["uid"])
    found = []
    for other in world.store.all(GPUPODS):
        named = ((other.get("spec") or {}).get("adopt") or {}).get("podId")
        age = (other["metadata"]["creationTimestamp"], other["metadata"]["uid"])
        if named == spec.adopt.pod_id and age < mine:
            found.append("/".join(key_of(other)))
    return tuple(sorted(found))


def _registration(world: World, raw: dict[str, Any], status: GpuPodStatus) -> tuple[bool, Reason, str] | None:
    problem = world.conf_problems.get(raw["metadata"]["namespace"])
    if problem is not None:
        return False, Reason.REGISTRATION_FAILED, problem
    verdict = world.verdict_on(key_of(raw), status)
    return (verdict.registered, verdict.reason, verdict.message) if verdict is not None else None
