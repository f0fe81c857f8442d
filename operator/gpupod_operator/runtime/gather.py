"""Answers the needs of a decision. Every failure becomes an Unknown with words for people; nothing is guessed."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.policies import Readiness
from gpupod_operator.core.gpupod.agent import LONGEST_PAUSE
from gpupod_operator.core.gpupod.scope import Facts, SecretsReport
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.plan import Need
from gpupod_operator.core.provider import Failure
from gpupod_operator.core.shell import ShellReading, SshClass
from gpupod_operator.ports import ProviderError
from gpupod_operator.runtime.gather_cells import KUBE_ERRORS, CellGatherer
from gpupod_operator.runtime.secret_values import SecretProblem
from gpupod_operator.runtime.slot import Slot
from gpupod_operator.runtime.views import (
    target_of,
)

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World


class Gatherer:
    """For one pass of one object. `raw` is the object as last read."""

    def __init__(self, world: World, slot: Slot, raw: dict[str, Any], spec: GpuPodSpec) -> None:
        self._world = world
        self._slot = slot
        self._spec = spec
        self._namespace: str = raw["metadata"]["namespace"]
        self._of_cells = CellGatherer(world, slot, raw)

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
            Need.TOKENS: self._of_cells.tokens,
            Need.CELLS: self._of_cells.cells,
            Need.LISTINGS: self._of_cells.listings,
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
            pair = await credentials.ssh_key(self._namespace, self._slot.uid, self._spec, new_pod=True)
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
            return ShellReading(SshClass.NO_KEY, str(error), now)
        level = "Tcp" if self._spec.health.readiness is Readiness.TCP and not self._wants_session() else "Auth"
        reading = await self._world.shell.read(target, pair.private, level=level)
        self._slot.reading = reading
        self._slot.reading_of = (target.pod_id, target.host, target.port)
        install = self._slot.install
        if install is not None and now - install.at > LONGEST_PAUSE and reading.agent and reading.agent.running:
            self._slot.install = None  # it came up and stayed: what comes later is another trouble
        return reading

    def _wants_session(self) -> bool:
        return bool(self._spec.workload.command) or bool(self._world.store.cells_of(self._slot.key))
