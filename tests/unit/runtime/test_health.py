"""What a scrape shows, and what it costs."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.api.names import GPUPODS
from gpupod_operator.core.provider import ProviderPod, ProviderState, Stamp
from gpupod_operator.runpod import KeySource
from gpupod_operator.runtime.health import collect
from runtimekit.world import NOW, Kit, gpupod

LOST: dict[str, Any] = {
    "phase": "Ready",
    "attempt": {"podId": "p1"},
    "pod": {"id": "p1", "costPerHour": "3.60"},
    "episode": {"kind": "PortLost", "firstSeen": "2026-03-01T11:50:00Z"},
}
NAMED = {"namespace": "ns", "name": "a"}


def shown(kit: Kit, series: str, **labels: str) -> float | None:
    collect(kit.world)
    return kit.metrics.registry.get_sample_value(series, labels)


def put(kit: Kit, raw: dict[str, Any], version: int) -> None:
    raw["metadata"]["resourceVersion"] = str(version)
    kit.world.store.put(GPUPODS, raw)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every status that is parsed."""
    seen: list[object] = []
    real = GpuPodStatus.model_validate

    def counted(value: object) -> GpuPodStatus:
        seen.append(value)
        return real(value)

    monkeypatch.setattr(GpuPodStatus, "model_validate", counted)
    return seen


async def test_the_figures_follow_the_status_and_the_clock():
    kit = Kit()
    put(kit, gpupod("a", **LOST), 1)
    put(kit, gpupod("b"), 1)
    assert shown(kit, "gpupod_phase", phase="Ready") == 1
    assert shown(kit, "gpupod_phase", phase="Pending") == 1
    assert shown(kit, "gpupod_unreachable_billing_seconds", **NAMED) == 600
    assert shown(kit, "gpupod_unreachable_billing_dollars", **NAMED) == pytest.approx(0.6)
    kit.clock.step(minutes=10)
    assert shown(kit, "gpupod_unreachable_billing_seconds", **NAMED) == 1200, "an episode grows without a write"
    put(kit, gpupod("a", phase="Ready"), 2)
    assert shown(kit, "gpupod_unreachable_billing_seconds", **NAMED) is None
    kit.world.store.remove(GPUPODS, ("ns", "a"))
    assert shown(kit, "gpupod_phase", phase="Ready") is None


async def test_a_deleted_object_whose_pod_bills_is_shown_until_it_is_gone():
    kit = Kit()
    raw = gpupod("a", **LOST)
    raw["metadata"]["deletionTimestamp"] = "2026-03-01T11:59:00Z"
    put(kit, raw, 1)
    series = "gpupod_teardown_blocked_dollars_per_hour"
    assert shown(kit, series, pod="p1", **NAMED) == pytest.approx(3.6)
    kit.world.store.remove(GPUPODS, ("ns", "a"))
    assert shown(kit, series, pod="p1", **NAMED) is None


async def test_a_scrape_parses_what_changed_since_the_last_one_and_nothing_else(parsed: list[object]):
    kit = Kit()
    for number in range(50):
        put(kit, gpupod(f"p{number}"), 1)
    collect(kit.world)
    assert len(parsed) == 50
    collect(kit.world)
    assert len(parsed) == 50
    put(kit, gpupod("p7", phase="Ready"), 2)
    collect(kit.world)
    assert len(parsed) == 51
    put(kit, gpupod("p7", uid="another"), 2)
    collect(kit.world)
    assert len(parsed) == 52, "another object of the name may have the same version in a restored cluster"


async def test_an_object_that_cannot_be_read_hides_no_other():
    kit = Kit()
    put(kit, gpupod("a", phase={"what": "is this"}), 1)
    put(kit, gpupod("b", phase="Ready"), 1)
    assert shown(kit, "gpupod_phase", phase="Ready") == 1
    assert shown(kit, "gpupod_phase", phase="Unreadable") == 1


async def test_every_pod_of_an_account_is_in_one_bucket_with_its_price():
    kit = Kit()
    kit.accounts.add("one").pods = {"p1": on_list("p1", "inst/ns/a/uid-a"), "f": on_list("f", None)}
    await kit.world._open(KeySource.from_bytes(b"one"))
    await kit.accounts.tick()
    put(kit, gpupod("a", uid="uid-a", **{**LOST, "account": {"id": "one"}}), 1)
    assert shown(kit, "gpupod_account_pods", account="one", bucket="active") == 1
    assert shown(kit, "gpupod_account_pods", account="one", bucket="foreign") == 1
    assert shown(kit, "gpupod_account_dollars_per_hour", account="one", bucket="foreign") == 2
    kit.clock.step(minutes=40)
    assert shown(kit, "gpupod_account_pods", account="one", bucket="unreachable") == 1
    assert shown(kit, "gpupod_account_dollars_per_hour", account="one", bucket="unreachable") == 2
    kit.world.store.remove(GPUPODS, ("ns", "a"))
    assert shown(kit, "gpupod_account_dollars_per_hour", account="one", bucket="orphan") == 2
    await kit.world.close()


def on_list(pod_id: str, owner: str | None) -> ProviderPod:
    stamp = Stamp(owner, "n") if owner is not None else None
    born = NOW - timedelta(hours=1)
    return ProviderPod(
        pod_id, "n", ProviderState.RUNNING, "RUNNING", stamp=stamp, cost_per_hour=Decimal(2), created_at=born
    )
