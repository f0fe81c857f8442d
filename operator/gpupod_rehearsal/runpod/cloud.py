"""The simulated cloud as a pure model: it is told what time it is and does no I/O.

What must happen outside (start a container, cut a network) leaves as orders; what happened comes back through
`container_started` and `container_failed`.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from gpupod_rehearsal.runpod import incidents, lifecycle
from gpupod_rehearsal.runpod.catalog import CPU_FLAVORS, DATA_CENTERS, GPU_TYPES, DataCenter, GpuType, Image
from gpupod_rehearsal.runpod.faults import FaultBook, Subject
from gpupod_rehearsal.runpod.ledger import Ledger, Meter, network_volume_rate
from gpupod_rehearsal.runpod.orders import Order
from gpupod_rehearsal.runpod.pod import PortMapping, SimPod
from gpupod_rehearsal.runpod.world import Account, ApiKey, Host, NetworkVolume, Timings, default_hosts, default_images


@dataclass(slots=True)
class Blueprint:
    """What a cloud consists of at the start, and the switches on its habits."""

    accounts: list[Account] = field(default_factory=list)
    hosts: list[Host] = field(default_factory=default_hosts)
    gpu_types: tuple[GpuType, ...] = GPU_TYPES
    data_centers: tuple[DataCenter, ...] = DATA_CENTERS
    images: dict[str, Image] = field(default_factory=default_images)
    timings: Timings = field(default_factory=Timings)
    billing_factor: Decimal = Decimal(1)
    omitted_count_is_no_capacity: bool = True
    seed: int = 7


class Cloud:
    """Hosts, accounts, pods, volumes, the ledger and the faults of one simulated vendor."""

    def __init__(self, clock: Callable[[], datetime], blueprint: Blueprint | None = None) -> None:
        plan = blueprint or Blueprint()
        self.clock = clock
        self.now = clock()
        self.random = random.Random(plan.seed)  # a replayable world
        self.timings = plan.timings
        self.images = plan.images
        self.omitted_count_is_no_capacity = plan.omitted_count_is_no_capacity
        self.hosts = {host.id: host for host in plan.hosts}
        self.gpu_types = {gpu.id: gpu for gpu in plan.gpu_types}
        self.cpu_flavors = {flavor.id: flavor for flavor in CPU_FLAVORS}
        self.data_centers = {center.id: center for center in plan.data_centers}
        self.accounts = {account.id: account for account in plan.accounts}
        self.pods: dict[str, SimPod] = {}
        self.volumes: dict[str, NetworkVolume] = {}
        self.ledger = Ledger(factor=plan.billing_factor)
        self.faults = FaultBook(lambda: self.now)
        self.orders: list[Order] = []
        self.placements = 0
        self._next_balance_job = self.now + self._balance_period()

    # -- time ---------------------------------------------------------------------------------------------------------

    def step(self, now: datetime) -> None:
        """Let everything happen that is due until `now`, in the order of time. Going back is ignored."""
        while self.step_once(now):
            pass

    def step_once(self, now: datetime) -> bool:
        """Go to the next instant at which something is due, at most to `now`; False once there is nothing left to do.

        Whoever carries out orders calls this, so that a host's answer carries the instant of the order.
        """
        at = self._next_event()
        if at is not None and at <= now:
            self.now = at
            self._settle()
            return True
        self.now = max(self.now, now)
        self._settle()
        return False

    def touch(self) -> None:
        """Take up at once what a new fault or a new answer of a host changes."""
        self._settle()

    def _settle(self) -> None:
        incidents.apply(self)
        if self.now >= self._next_balance_job:
            incidents.collect_debts(self)
            while self._next_balance_job <= self.now:
                self._next_balance_job += self._balance_period()
        for pod in list(self.living()):
            lifecycle.progress(self, pod)
            lifecycle.align_network(self, pod)

    def _next_event(self) -> datetime | None:
        times = [self._next_balance_job]
        times += self.faults.edges(self.now)
        times += incidents.deadlines(self)
        for pod in self.living():
            times += lifecycle.deadlines(self, pod)
        return min((at for at in times if at > self.now), default=None)

    def _balance_period(self) -> timedelta:
        return timedelta(seconds=max(0.2, self.timings.balance_job / float(self.ledger.factor)))

    # -- accounts -----------------------------------------------------------------------------------------------------

    def authenticate(self, secret: str) -> tuple[Account, ApiKey] | None:
        """The account and key behind a bearer token."""
        for account in self.accounts.values():
            for key in account.keys:
                if key.secret == secret:
                    return account, key
        for pod in self.living():
            if pod.key == secret:
                scopes = frozenset({"pods:write"})
                return self.accounts[pod.account], ApiKey(f"pod:{pod.id}", secret, scopes, pod.id)
        return None

    def balance(self, account: Account) -> Decimal:
        """USD left, exact."""
        return account.deposited - self.ledger.spent(self.now, account=account.id)

    # -- pods ---------------------------------------------------------------------------------------------------------

    def living(self) -> Iterable[SimPod]:
        """Pods that exist at the vendor, stopped ones included."""
        return [pod for pod in self.pods.values() if pod.alive]

    def pods_of(self, account: Account) -> list[SimPod]:
        """The account's pods, ended ones too, oldest first; pods of one instant by id."""
        mine = [pod for pod in self.pods.values() if pod.account == account.id]
        return sorted(mine, key=lambda pod: (pod.created_at, pod.id))

    def free_gpus(self, host: Host) -> int:
        """GPUs of a host that neither tenants of other accounts nor pods hold."""
        return self.all_free_gpus()[host.id]

    def all_free_gpus(self) -> dict[str, int]:
        """Free GPUs of every host."""
        free = {host.id: host.gpus - host.taken for host in self.hosts.values()}
        for pod in self.pods.values():
            if pod.alive and pod.holds_gpus:
                free[pod.host] -= pod.gpu_count
        return free

    def subject(self, pod: SimPod, method: str | None = None, path: str | None = None) -> Subject:
        """What a fault is matched against for this pod."""
        return Subject(pod.id, pod.name, pod.host, pod.data_center, pod.account, pod.gpu_type, method, path)

    def container_started(self, pod_id: str, generation: int, ports: tuple[PortMapping, ...]) -> None:
        """A host reports that it started a container. A report about an earlier start is dropped."""
        pod = self.pods[pod_id]
        if pod.alive and pod.starts == generation:
            lifecycle.container_is_up(self, pod, ports)
            self._settle()

    def container_failed(self, pod_id: str, generation: int, reason: str) -> None:
        """A host could not start a container; the pod stays STARTING and its log says why."""
        pod = self.pods[pod_id]
        if pod.alive and pod.starts == generation:
            pod.log(self.now, "system", f"error creating container: {reason}")

    def add_volume(self, account: Account, name: str, size: int, data_center: str, kind: str) -> NetworkVolume:
        """Make a network volume and start its meter."""
        volume = NetworkVolume(self.new_id(10), account.id, name, size, data_center, self.now, kind)
        self.volumes[volume.id] = volume
        self.meter_volume(volume)
        return volume

    def meter_volume(self, volume: NetworkVolume) -> None:
        """Bill a volume at its present size from now on."""
        rate = network_volume_rate(volume.size)
        self.ledger.meter(volume.account, volume.id, Meter.NETWORK_VOLUME, self.now, Decimal(0), rate)

    def take_orders(self) -> list[Order]:
        """Orders for the hosts since the last call, oldest first."""
        orders, self.orders = self.orders, []
        return orders

    def new_id(self, length: int = 14) -> str:
        """An id in the vendor's alphabet."""
        return "".join(self.random.choice(string.ascii_lowercase + string.digits) for _ in range(length))
