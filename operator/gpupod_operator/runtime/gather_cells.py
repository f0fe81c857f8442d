"""Answers what a decision needs of the cells: their tokens' prints, the live objects, and what is on the Hub."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

from gpupod_operator.api.annotations import ABANDON_DATA
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.policies import TokenFrom
from gpupod_operator.api.sweepcell import SweepCellSpec, SweepCellStatus
from gpupod_operator.core.artifacts import HubCommit
from gpupod_operator.core.gate import CellFacts
from gpupod_operator.core.gpupod.scope import Facts
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.ports import ApiForbidden, ApiNotFound, ApiUnavailable, HubError
from gpupod_operator.runtime.secret_values import SecretProblem
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.views import COMMITS, abandon_reason, agent_of, digest_of, hub_destination, token_source

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

LISTINGS_AT_ONCE = 8
KUBE_ERRORS = (ApiUnavailable, ApiForbidden, ApiNotFound)


class CellGatherer:
    """For one pass of one GpuPod. `raw` is the GpuPod as last read."""

    def __init__(self, world: World, slot: Slot, raw: dict[str, Any]) -> None:
        self._world = world
        self._slot = slot
        self._raw = raw
        self._namespace: str = raw["metadata"]["namespace"]
        self._name: str = raw["metadata"]["name"]

    async def tokens(self, facts: Facts, _: GpuPodStatus) -> Facts:
        """Read once what this process has not seen yet; later each cell's own pass keeps the prints fresh."""
        credentials = self._world.credentials
        raws = self._world.store.cells_of(self._slot.key)
        for raw in raws:
            uid = raw["metadata"]["uid"]
            if token_source(raw) != TokenFrom.SECRET or credentials.token_print(uid) is not None:
                continue
            try:
                await credentials.hub_token(self._namespace, uid, SweepCellSpec.model_validate(raw["spec"]))
            except SecretProblem:
                continue  # remembered as missing; the cell's own condition says it
            except KUBE_ERRORS as error:
                return dataclasses.replace(facts, cells_digest=Unknown(f"Secrets cannot be read: {error}"))
        digest = digest_of(raws, credentials.token_print)
        return dataclasses.replace(facts, cells_digest=digest or Unknown("a cell's token was not read"))

    async def cells(self, facts: Facts, status: GpuPodStatus) -> Facts:
        if isinstance(facts.cells, Known):
            return facts
        try:
            raws = await self._world.cluster.list_cells(self._namespace, self._name)
        except KUBE_ERRORS as error:
            return dataclasses.replace(facts, cells=Unknown(f"SweepCells cannot be listed: {error}"))
        pod_id = status.attempt.pod_id if status.attempt is not None else None
        cells = tuple(self._cell(raw, facts, status, pod_id) for raw in raws)
        return dataclasses.replace(facts, cells=Known(cells))

    def _cell(self, raw: dict[str, Any], facts: Facts, status: GpuPodStatus, pod_id: str | None) -> CellFacts:
        metadata = raw["metadata"]
        agent = agent_of(facts, status)
        annotations = {**(self._raw["metadata"].get("annotations") or {})}
        own = metadata.get("annotations") or {}
        return CellFacts(
            uid=metadata["uid"],
            name=metadata["name"],
            spec=SweepCellSpec.model_validate(raw["spec"]),
            status=SweepCellStatus.model_validate(raw.get("status") or {}),
            abandoned=abandon_reason(own.get(ABANDON_DATA), pod_id)
            or abandon_reason(annotations.get(ABANDON_DATA), pod_id),
            deleting=bool(metadata.get("deletionTimestamp")),
            agent=agent.cells.get(metadata["uid"]) if agent is not None else None,
        )

    async def listings(self, facts: Facts, status: GpuPodStatus) -> Facts:
        facts = await self.cells(facts, status)
        if not isinstance(facts.cells, Known):
            return facts
        agent = agent_of(facts, status)
        turns = asyncio.Semaphore(LISTINGS_AT_ONCE)
        commits: dict[tuple[str, str, str, str | None], asyncio.Task[tuple[HubCommit, ...]]] = {}

        async def listed(cell: CellFacts) -> CellFacts:
            seen = agent.cells.get(cell.uid) if agent is not None else None
            async with turns:
                return dataclasses.replace(await self._listed(cell, commits), agent=seen)

        cells = await asyncio.gather(*(listed(cell) for cell in facts.cells.value))
        return dataclasses.replace(facts, cells=Known(tuple(cells)), listed_cells=True)

    async def _listed(
        self, cell: CellFacts, commits: dict[tuple[str, str, str, str | None], asyncio.Task[tuple[HubCommit, ...]]]
    ) -> CellFacts:
        """The cell's prefix; its repository's commits are read once for all cells, after the visit of this pass."""
        destination = hub_destination(cell.spec)
        try:
            token = await self._world.credentials.hub_token(self._namespace, cell.uid, cell.spec)
            listing = await self._world.hub.list_prefix(destination, token)
            repository = (destination.repo.lower(), destination.repo_type, destination.revision, token)
            if not listing.files:
                # nothing is there that a commit could vouch for
                return dataclasses.replace(cell, listing=Known(listing), commits=Known(()))
            if repository not in commits:
                reading = self._world.hub.commits(destination, token, limit=COMMITS)
                commits[repository] = asyncio.ensure_future(reading)
            found = await commits[repository]
        except (HubError, SecretProblem, *KUBE_ERRORS) as error:
            unknown = Unknown(f"{destination.repo}: {error}")
            return dataclasses.replace(cell, listing=unknown, commits=unknown)
        return dataclasses.replace(cell, listing=Known(listing), commits=Known(found))
