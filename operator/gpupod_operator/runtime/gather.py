"""Answers the needs of a decision. Every failure becomes an Unknown with words for people; nothing is guessed."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from gpupod_operator.api.annotations import ABANDON_DATA
from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.policies import Readiness
from gpupod_operator.api.sweepcell import SweepCellSpec, SweepCellStatus
from gpupod_operator.core.artifacts import HubCommit
from gpupod_operator.core.gate import CellFacts
from gpupod_operator.core.gpupod.scope import Facts, SecretsReport
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.plan import Need
from gpupod_operator.core.provider import Failure
from gpupod_operator.core.shell import ShellReading, SshClass
from gpupod_operator.ports import ApiForbidden, ApiNotFound, ApiUnavailable, HubError, ProviderError
from gpupod_operator.runtime.credentials import SecretProblem
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.views import COMMITS, abandon_reason, agent_of, hub_destination, target_of

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

LISTINGS_AT_ONCE = 8
KUBE_ERRORS = (ApiUnavailable, ApiForbidden, ApiNotFound)


class Gatherer:
    """For one pass of one object. `raw` is the object as last read."""

    def __init__(self, world: World, slot: Slot, raw: dict[str, Any], spec: GpuPodSpec) -> None:
        self._world = world
        self._slot = slot
        self._raw = raw
        self._spec = spec
        self._namespace: str = raw["metadata"]["namespace"]
        self._name: str = raw["metadata"]["name"]

    async def gather(self, facts: Facts, needs: frozenset[Need], status: GpuPodStatus) -> Facts:
        """The facts with every need answered, in an order that lets later answers see earlier ones."""
        answers: dict[Need, Callable[[Facts, GpuPodStatus], Awaitable[Facts]]] = {
            Need.SECRETS: self._secrets,
            Need.ACCOUNT: self._account,
            Need.LIST: self._list,
            Need.POD: self._pod,
            Need.CATALOG: self._catalog,
            Need.VOLUME: self._volume,
            Need.SYSTEM_LOG: self._system_log,
            Need.SHELL: self._shell,
            Need.CELLS: self._cells,
            Need.LISTINGS: self._listings,
        }
        for need, answer in answers.items():
            if need in needs:
                facts = await answer(facts, status)
        return facts

    async def _account(self, facts: Facts, _: GpuPodStatus) -> Facts:
        try:
            account = await self._world.account_of(self._namespace, self._slot, self._spec)
        except SecretProblem as problem:
            report = SecretsReport(problem=str(problem), reason=problem.reason)
            return dataclasses.replace(facts, account=Unknown(str(problem)), secrets=Known(report))
        except ProviderError as error:
            words = (
                "401: RunPod refuses the key; put a valid one into the Secret"
                if (error.failure is Failure.UNAUTHORIZED)
                else f"the account cannot be read: {error.detail}"
            )
            return dataclasses.replace(facts, account=Unknown(words))
        except KUBE_ERRORS as error:
            return dataclasses.replace(facts, account=Unknown(f"the Secret cannot be read: {error}"))
        inventory = facts.inventory
        if inventory is None and account.observer.inventory.complete_at is not None:
            inventory = account.observer.inventory
        return dataclasses.replace(facts, account=Known(account.identity), inventory=inventory)

    async def _list(self, facts: Facts, _: GpuPodStatus) -> Facts:
        account = self._world.account_of_slot(self._slot)
        if account is None:
            return facts
        inventory = await account.observer.fresh()
        return dataclasses.replace(facts, inventory=inventory, listed_now=True)

    async def _pod(self, facts: Facts, status: GpuPodStatus) -> Facts:
        pod_id = status.attempt.pod_id if status.attempt is not None else None
        account = self._world.account_of_slot(self._slot)
        if account is None or pod_id is None:
            return dataclasses.replace(facts, pod=Unknown("no account or no pod id"))
        try:
            return dataclasses.replace(facts, pod=Known(await account.provider.get_pod(pod_id)))
        except ProviderError as error:
            if error.failure is Failure.NOT_FOUND:
                return dataclasses.replace(facts, pod=Known(None))
            return dataclasses.replace(facts, pod=Unknown(error.detail))

    async def _catalog(self, facts: Facts, _: GpuPodStatus) -> Facts:
        account = self._world.account_of_slot(self._slot)
        if account is None:
            return dataclasses.replace(facts, catalog=Unknown("no account"))
        try:
            return dataclasses.replace(facts, catalog=Known(await self._world.offers(account)))
        except ProviderError as error:
            return dataclasses.replace(facts, catalog=Unknown(error.detail))

    async def _volume(self, facts: Facts, _: GpuPodStatus) -> Facts:
        network = self._spec.volume.network if self._spec.volume is not None else None
        account = self._world.account_of_slot(self._slot)
        if network is None or account is None:
            return dataclasses.replace(facts, volume=Unknown("no account"))
        try:
            return dataclasses.replace(facts, volume=Known(await account.provider.network_volume(network.volume_id)))
        except ProviderError as error:
            if error.failure is Failure.NOT_FOUND:
                return dataclasses.replace(facts, volume=Known(None))
            return dataclasses.replace(facts, volume=Unknown(error.detail))

    async def _secrets(self, facts: Facts, _: GpuPodStatus) -> Facts:
        credentials = self._world.credentials
        try:
            pair = await credentials.ssh_key(self._namespace, self._slot.uid, self._spec)
            await credentials.environment(self._namespace, self._spec)
        except SecretProblem as problem:
            report = SecretsReport(problem=str(problem), reason=problem.reason)
            return dataclasses.replace(facts, secrets=Known(report))
        except KUBE_ERRORS as error:
            return dataclasses.replace(facts, secrets=Unknown(f"Secrets cannot be read: {error}"))
        return dataclasses.replace(facts, secrets=Known(SecretsReport(ssh_public_key=pair.public)))

    async def _system_log(self, facts: Facts, status: GpuPodStatus) -> Facts:
        pod_id = status.attempt.pod_id if status.attempt is not None else None
        account = self._world.account_of_slot(self._slot)
        if account is None or pod_id is None:
            return dataclasses.replace(facts, system_log=Unknown("no account or no pod id"))
        try:
            return dataclasses.replace(facts, system_log=Known(await account.provider.system_log(pod_id)))
        except ProviderError as error:
            return dataclasses.replace(facts, system_log=Unknown(error.detail))

    async def _shell(self, facts: Facts, status: GpuPodStatus) -> Facts:
        reading = await self._visit(status)
        self._world.readings.publish(self._slot, status, reading)
        return dataclasses.replace(facts, shell=reading, visited_now=True)

    async def _visit(self, status: GpuPodStatus) -> ShellReading:
        target = target_of(status, self._spec)
        now = self._world.clock.now()
        if target is None:
            # the gate asks for a visit also where none can be made: no contact, nothing concluded
            return ShellReading(SshClass.TIMEOUT, "the pod has no endpoint", now)
        try:
            pair = await self._world.credentials.ssh_key(self._namespace, self._slot.uid, self._spec)
        except (SecretProblem, *KUBE_ERRORS) as error:
            return ShellReading(SshClass.OTHER, f"no SSH key: {error}", now)
        level = "Tcp" if self._spec.health.readiness is Readiness.TCP and not self._wants_session() else "Auth"
        reading = await self._world.shell.read(target, pair.private, level=level)
        self._slot.reading = reading
        self._slot.reading_of = (target.pod_id, target.host, target.port)
        return reading

    def _wants_session(self) -> bool:
        return bool(self._spec.workload.command) or bool(self._world.store.cells_of(self._slot.key))

    async def _cells(self, facts: Facts, status: GpuPodStatus) -> Facts:
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

    async def _listings(self, facts: Facts, status: GpuPodStatus) -> Facts:
        facts = await self._cells(facts, status)
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
            if repository not in commits:
                reading = self._world.hub.commits(destination, token, limit=COMMITS)
                commits[repository] = asyncio.ensure_future(reading)
            found = await commits[repository]
        except (HubError, SecretProblem, *KUBE_ERRORS) as error:
            unknown = Unknown(f"{destination.repo}: {error}")
            return dataclasses.replace(cell, listing=unknown, commits=unknown)
        return dataclasses.replace(cell, listing=Known(listing), commits=Known(found))
