"""How long the money of an account lasts: RunPod deletes pods when a prepaid balance is used up, data and all."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.accounts import Account

if TYPE_CHECKING:
    from gpupod_operator.runtime.world import World

log = logging.getLogger("gpupod_operator.runway")

EVERY = timedelta(minutes=10)
"""Between two looks at a balance: a tenth of a call per minute and account."""
FIRST = timedelta(seconds=30)
"""Until an account is open."""
LOW = timedelta(hours=6)
"""Less than this is told: enough to top up in the morning what runs through the night."""
PREPAID = "PREPAID"


def runway(balance: Decimal, per_hour: Decimal) -> timedelta | None:
    """None: nothing bills, it lasts for ever. An overdrawn balance lasts no time at all."""
    if per_hour <= 0:
        return None
    return timedelta(hours=min(max(float(balance / per_hour), 0.0), 24.0 * 3650))


class Runway:
    """Looks at every account in use; one that may not be asked (a key without `billing:read`) has no figures."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._low: set[str] = set()
        self._mute: set[str] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """As soon as an account is open, and then every ten minutes."""
        while not stop.is_set():
            accounts = self._world.opened()
            for account in accounts:
                await self.look(account)
            pause = EVERY if accounts else FIRST
            try:
                async with asyncio.timeout(pause.total_seconds()):
                    await stop.wait()
            except TimeoutError:
                continue

    async def look(self, account: Account) -> None:
        """Set the account's figures, and tell when they cross the line, either way."""
        name, metrics = account.identity.id, self._world.metrics
        try:
            balance = await account.provider.balance()
        except ProviderError as error:
            if name not in self._mute:
                log.info("the balance of account %s cannot be read, its runway is not known: %s", name, error.detail)
                self._mute.add(name)
            return
        self._mute.discard(name)
        metrics.balance.labels(name).set(float(balance.amount))
        inventory = account.observer.inventory
        if not inventory.fresh or balance.mode != PREPAID:
            return
        per_hour = sum((p.cost_per_hour or Decimal(0) for p in inventory.pods.values() if p.live), Decimal(0))
        left = runway(balance.amount, per_hour)
        metrics.runway.labels(name).set(float("inf") if left is None else left.total_seconds())
        low = left is not None and left < LOW
        if low and name not in self._low:
            log.warning(
                "account %s has $%.2f left, which lasts %.1f h at $%.2f/h: RunPod deletes its pods at zero. Top it up",
                name,
                float(balance.amount),
                left.total_seconds() / 3600 if left is not None else 0,
                float(per_hour),
            )
        if not low and name in self._low:
            log.info("account %s lasts for more than %d h again", name, LOW // timedelta(hours=1))
        (self._low.add if low else self._low.discard)(name)
