"""Everything a loop needs, in one place, made once at start: no module globals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.names import GPUPODS
from gpupod_operator.core.policy import Policy
from gpupod_operator.core.provider import GpuOffer
from gpupod_operator.ports import ArtifactHub, Clock, Cluster, PodShell
from gpupod_operator.render.rows import Row, Verdict
from gpupod_operator.runpod.accounts import Account, Accounts
from gpupod_operator.runpod.keys import KeySource
from gpupod_operator.runtime.claims import Claims
from gpupod_operator.runtime.commitments import Commitments
from gpupod_operator.runtime.credentials import Credentials
from gpupod_operator.runtime.figures import Figures
from gpupod_operator.runtime.fleet import FleetState
from gpupod_operator.runtime.metrics import Metrics
from gpupod_operator.runtime.readings import Readings
from gpupod_operator.runtime.registrations import Registrations
from gpupod_operator.runtime.settings import Settings
from gpupod_operator.runtime.slot import Slot, Slots
from gpupod_operator.runtime.store import Key, Store
from gpupod_operator.runtime.teller import Teller

CATALOG_AGE = timedelta(minutes=10)
"""Prices and names of GPU types change seldom; the answer of a create is checked anyway."""


class World:
    """Dependencies and shared state of one operator process."""

    def __init__(
        self,
        *,
        settings: Settings,
        clock: Clock,
        cluster: Cluster,
        accounts: Accounts,
        hub: ArtifactHub,
        shell: PodShell,
        metrics: Metrics,
        instance: str,
        may_act: Callable[[], bool],
        agent_tree: str,
        entropy: Callable[[], str],
    ) -> None:
        self.settings = settings
        self.policy: Policy = settings.policy()
        self.clock = clock
        self.cluster = cluster
        self.accounts = accounts
        self.hub = hub
        self.shell = shell
        self.metrics = metrics
        self.instance = instance
        self.may_act = may_act
        self.agent_tree = agent_tree
        self.entropy = entropy
        self.store = Store()
        self.slots = Slots()
        self.cell_slots = Slots()
        self.teller = Teller(cluster, metrics)
        self.credentials = Credentials(cluster, settings)
        self.commitments = Commitments(settings.ceilings())
        self.fleet = FleetState(cluster, settings.namespace)
        self.readings = Readings(self._wake_cells)
        self.mark_conf: Callable[[str], None] = lambda _: None
        self.conf_problems: dict[str, str | None] = {}
        """By namespace: why the last rendering could not be written."""
        self._opened: dict[str, Account] = {}
        self._observing: dict[str, asyncio.Task[None]] = {}
        self._stop = asyncio.Event()
        self._catalogs: dict[str, tuple[datetime, tuple[GpuOffer, ...]]] = {}
        self._asking_catalog: dict[str, asyncio.Task[tuple[GpuOffer, ...]]] = {}
        self.registrations = Registrations()
        self.claims = Claims()
        self.figures = Figures()
        self.store.listen(self._object_changed)

    async def account_of(self, namespace: str, slot: Slot, spec: GpuPodSpec) -> Account:
        """The account behind the object's key; its observer runs from the first use on."""
        key = await self.credentials.runpod_key(namespace, slot.uid, spec)
        slot.account = await self._open(key)
        return slot.account

    async def own_account(self) -> Account | None:
        """The account of the operator's own key, observed from then on; None when it has no key of its own.

        Pods of objects that are gone may live there while no object names it. Raises ProviderError.
        """
        path = self.settings.runpod_key_file
        return await self._open(KeySource.from_file(path)) if path is not None and path.exists() else None

    def account_of_slot(self, slot: Slot) -> Account | None:
        """The account that the slot's object used last, without asking anybody."""
        return slot.account

    def opened(self) -> tuple[Account, ...]:
        """Every account in use by this process."""
        return tuple(self._opened.values())

    async def offers(self, account: Account) -> tuple[GpuOffer, ...]:
        """The GPU catalog, at most ten minutes old. Raises ProviderError."""
        held = self._catalogs.get(account.identity.id)
        if held is not None and self.clock.now() - held[0] < CATALOG_AGE:
            return held[1]
        # a fleet that waits for its pods asks at once: an answer, or none, is for all of them
        asking = self._asking_catalog.get(account.identity.id)
        if asking is None:
            asking = asyncio.create_task(self._ask_catalog(account), name="gpu-offers")
            self._asking_catalog[account.identity.id] = asking
        return await asyncio.shield(asking)

    async def _ask_catalog(self, account: Account) -> tuple[GpuOffer, ...]:
        now = self.clock.now()
        try:
            offers = await account.provider.gpu_offers()
        finally:
            del self._asking_catalog[account.identity.id]
        self._catalogs[account.identity.id] = (now, offers)
        return offers

    def serves(self, namespace: str) -> bool:
        """Whether objects of this namespace are ours to look after: all are, unless we were told which."""
        return not self.settings.watch_namespaces or namespace in self.settings.watch_namespaces

    async def list_served(self, plural: str) -> tuple[dict[str, Any], ...]:
        """A live, complete list of one of our kinds over the namespaces that are served, and over no other.

        Raises as `Cluster.list_all`; a part is no list.
        """
        if not self.settings.watch_namespaces:
            return await self.cluster.list_all(plural)
        namespaces = sorted(set(self.settings.watch_namespaces))
        lists = [await self.cluster.list_all(plural, name) for name in namespaces]
        return tuple(raw for found in lists for raw in found)

    def rows_of(self, namespace: str) -> tuple[Row, ...] | None:
        """Rows of a namespace, from committed status; None before every object was seen."""
        return self.registrations.rows(namespace) if self.store.seeded else None

    def verdict_on(self, key: Key, status: GpuPodStatus) -> Verdict | None:
        """The renderer's verdict on one object with this status; None before every object was seen."""
        return self.registrations.verdict(key, status) if self.store.seeded else None

    def wake_namespace(self, namespace: str) -> None:
        """Wake every GpuPod of a namespace."""
        for slot in self.slots:
            if slot.key[0] == namespace:
                slot.wake.set()

    async def close(self) -> None:
        """End the observers."""
        self._stop.set()
        await asyncio.gather(*self._observing.values(), return_exceptions=True)
        await self.accounts.close()

    async def _open(self, key: KeySource) -> Account:
        account = await self.accounts.open(key)
        self._opened[account.identity.id] = account
        if account.identity.id not in self._observing:
            account.observer.subscribe(self.slots.wake)
            task = asyncio.create_task(account.observer.run(self._stop), name=f"observer-{account.identity.id}")
            self._observing[account.identity.id] = task
        return account

    def _object_changed(self, plural: str, key: Key, before: dict[str, Any] | None) -> None:
        after = self.store.get(plural, key)
        if plural == GPUPODS:
            self._gpupod_changed(key, after)
        else:
            self._cell_changed(key, before, after)

    def _gpupod_changed(self, key: Key, after: dict[str, Any] | None) -> None:
        # a younger object that waits for a name is woken when its holder changes or goes
        self.slots.wake(self.registrations.changed(key, after))
        self.slots.wake(self.commitments.changed(key, after))
        self.mark_conf(key[0])
        self.cell_slots.wake(frozenset(raw["metadata"]["uid"] for raw in self.store.cells_of(key)))
        if after is None:
            self.readings.forget(key)

    def _cell_changed(self, key: Key, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        # a younger cell that waits for a destination is woken when its holder goes
        self.cell_slots.wake(self.claims.changed(key, after))
        for raw in (before, after):
            slot = self.slots.of_key((key[0], raw["spec"]["podRef"]["name"])) if raw is not None else None
            if slot is not None:
                slot.wake.set()

    def _wake_cells(self, uids: set[str]) -> None:
        self.cell_slots.wake(frozenset(uids))
