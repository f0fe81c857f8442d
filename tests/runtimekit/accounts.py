"""Accounts whose pods are a dict; their observers are the real ones."""

from __future__ import annotations

from decimal import Decimal

from gpupod_operator.core.ownership import OwnedPod
from gpupod_operator.core.provider import AccountIdentity, Failure, ProviderPod
from gpupod_operator.ports import Clock, ProviderError
from gpupod_operator.runpod import Governor, KeySource
from gpupod_operator.runpod.accounts import Account
from gpupod_operator.runpod.client import Balance
from gpupod_operator.runpod.observer import AccountObserver


class Cloud:
    """One account. `refuses`: its key was revoked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pods: dict[str, ProviderPod] = {}
        self.deleted: list[str] = []
        self.refuses = False
        self.money: Balance | ProviderError = Balance(Decimal(1000), "PREPAID")

    async def account(self) -> AccountIdentity:
        self._answer()
        return AccountIdentity(self.name, f"print-{self.name}", verified=True)

    async def list_pods(self) -> tuple[ProviderPod, ...]:
        self._answer()
        return tuple(self.pods.values())

    async def get_pod(self, pod_id: str) -> ProviderPod:
        self._answer()
        if pod_id not in self.pods:
            raise ProviderError(Failure.NOT_FOUND, pod_id)
        return self.pods[pod_id]

    async def balance(self) -> Balance:
        self._answer()
        if isinstance(self.money, ProviderError):
            raise self.money
        return self.money

    async def delete_pod(self, pod: OwnedPod) -> None:
        self._answer()
        self.deleted.append(pod.id)

    def _answer(self) -> None:
        if self.refuses:
            raise ProviderError(Failure.UNAUTHORIZED, f"the key of {self.name} is refused")


class MemoryAccounts:
    """Opens a key whose value is the name of an account in `clouds`."""

    def __init__(self, clock: Clock) -> None:
        self.clouds: dict[str, Cloud] = {}
        self._clock = clock
        self._open: dict[str, Account] = {}

    def add(self, name: str) -> Cloud:
        return self.clouds.setdefault(name, Cloud(name))

    async def open(self, key: KeySource) -> Account:
        name = key.current().value
        cloud = self.clouds[name]
        identity = await cloud.account()
        if name not in self._open:
            # it ticks when a test says so: the interval is longer than any test
            observer = AccountObserver(cloud, identity, self._clock, interval=3600, gap=0)
            self._open[name] = Account(identity, cloud, observer, Governor())  # type: ignore[arg-type]
        return self._open[name]

    async def tick(self) -> None:
        """Every account that is open is listed once."""
        for account in self._open.values():
            await account.observer.tick()

    async def close(self) -> None:
        for account in self._open.values():
            await account.observer.close()
