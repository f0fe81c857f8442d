"""How long the money lasts: told when it falls below six hours, once, and when it is more again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from gpupod_operator.core.provider import Failure, ProviderPod, ProviderState
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod import KeySource
from gpupod_operator.runpod.client import Balance
from gpupod_operator.runtime.runway import Runway, runway
from runtimekit.world import Kit


@pytest.mark.parametrize(
    ("balance", "per_hour", "told"),
    [
        ("12", "2", timedelta(hours=6)),
        ("0", "2", timedelta(0)),
        ("-3", "2", timedelta(0)),
        ("12", "0", None),
    ],
)
def test_it_is_the_balance_over_what_bills(balance, per_hour, told):
    assert runway(Decimal(balance), Decimal(per_hour)) == told


class Purse:
    """An account with two pods at $1 and one stopped, and a balance that a test sets."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.watch = Runway(kit.world)

    async def open(self) -> None:
        cloud = self.kit.accounts.add("one")
        pod = ProviderPod("p", "n", ProviderState.RUNNING, "RUNNING", cost_per_hour=Decimal(1))
        stopped = replace(pod, id="p3", state=ProviderState.EXITED, cost_per_hour=Decimal(0))
        cloud.pods = {"p1": replace(pod, id="p1"), "p2": replace(pod, id="p2"), "p3": stopped}
        await self.kit.world._open(KeySource.from_bytes(b"one"))
        await self.kit.accounts.tick()

    async def look(self, amount: str, mode: str = "PREPAID") -> None:
        self.kit.accounts.clouds["one"].money = Balance(Decimal(amount), mode)
        (account,) = self.kit.world.opened()
        await self.watch.look(account)

    def metric(self, name: str) -> float | None:
        return self.kit.metrics.registry.get_sample_value(f"gpupod_account_{name}", {"account": "one"})


@pytest.fixture
async def purse() -> AsyncIterator[Purse]:
    made = Purse(Kit())
    await made.open()
    yield made
    await made.kit.world.close()


async def test_a_balance_that_gets_low_is_told_once_each_time(purse: Purse, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "gpupod_operator.runway")
    for amount in ("100", "11", "10", "100", "11"):
        await purse.look(amount)
    lines = [r.getMessage() for r in caplog.records]
    assert [("lasts 5.5 h at $2.00/h" in line, "again" in line) for line in lines] == [
        (True, False),
        (False, True),
        (True, False),
    ]
    assert purse.metric("runway_seconds") == 5.5 * 3600
    assert purse.metric("balance_dollars") == 11


async def test_an_invoice_has_no_end(purse: Purse, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "gpupod_operator.runway")
    await purse.look("0", mode="POSTPAID")
    assert purse.metric("runway_seconds") is None
    assert caplog.records == []


async def test_a_key_that_may_not_ask_is_told_once_and_has_no_figures(purse: Purse, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "gpupod_operator.runway")
    purse.kit.accounts.clouds["one"].money = ProviderError(Failure.FORBIDDEN, "403: access denied")
    (account,) = purse.kit.world.opened()
    for _ in range(3):
        await purse.watch.look(account)
    assert len(caplog.records) == 1
    assert purse.metric("balance_dollars") is None
