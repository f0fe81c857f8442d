from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from gpupod_operator.core.provider import GpuOffer, PortMapping, ProviderState, Stamp
from gpupod_operator.runpod.catalog import offer_of, volume_of
from gpupod_operator.runpod.models import pod_of
from gpupod_operator.runpod.tolerance import Malformed


def test_everything_that_the_core_reads(wire: dict[str, Any]):
    pod = pod_of(wire)
    assert (pod.id, pod.name, pod.state, pod.raw_state) == ("p1", "sweep-p1", ProviderState.RUNNING, "RUNNING")
    assert pod.stamp == Stamp("inst/ns/sweep/uid-1", "n1")
    assert (pod.image, pod.ports, pod.cloud, pod.data_center) == (
        "runpod/pytorch:2.8",
        ("22/tcp", "8888/http"),
        "SECURE",
        "US-KS-2",
    )
    assert (pod.gpu_type_id, pod.gpu_count, pod.gpus_visible) == ("NVIDIA H100 80GB HBM3", 2, 2)
    assert pod.cost_per_hour == Decimal("5.9801")
    assert (pod.placed, pod.host_hint, pod.has_runtime, pod.locked) == (True, "64411eb2", True, False)
    assert pod.mappings == (
        PortMapping(22, 30022, "1.2.3.4", "tcp"),
        PortMapping(8888, None, "100.65.0.1", "http"),
    )
    assert (pod.container_disk_gb, pod.persistent_gb, pod.network_volume_id) == (50, 20, None)
    assert pod.created_at == datetime(2026, 11, 30, 11, 0, tzinfo=UTC)
    assert pod.started_at == datetime(2026, 11, 30, 11, 1, 2, 345000, tzinfo=UTC)


def test_no_value_of_the_environment_is_carried(wire: dict[str, Any]):
    assert "hf_donotshow" not in repr(pod_of(wire))


def test_a_pod_of_two_fields_is_a_pod():
    pod = pod_of({"id": "p1", "env": {}})
    assert pod.state is ProviderState.UNKNOWN
    assert (pod.stamp, pod.ports, pod.mappings, pod.cost_per_hour, pod.placed) == (None, (), (), None, False)
    assert pod.live


@pytest.mark.parametrize("raw", ["MIGRATING", "", "paused", None, 7])
def test_a_status_of_tomorrow_is_unknown_and_not_gone(wire: dict[str, Any], raw: object):
    pod = pod_of({**wire, "status": raw})
    assert pod.state is ProviderState.UNKNOWN
    assert pod.live
    assert pod.raw_state == (raw if isinstance(raw, str) else "")


@pytest.mark.parametrize(
    "field",
    [
        *("name", "image", "disk", "mounts", "ports", "gpu", "cloud", "dataCenterId"),
        *("ssh", "cost", "locked", "runtime", "createdAt", "startedAt", "status"),
    ],
)
@pytest.mark.parametrize("strange", ["missing", None, "?", 3.5, [], {}, [None], {"x": {"y": 1}}], ids=repr)
def test_a_missing_or_strange_field_does_not_hide_the_pod(wire: dict[str, Any], field: str, strange: object):
    bent = {name: value for name, value in wire.items() if name != field}
    if strange != "missing":
        bent[field] = strange
    pod, whole = pod_of(bent), pod_of(wire)
    assert (pod.id, pod.stamp) == (whole.id, whole.stamp)
    if field not in ("status", "runtime", "startedAt"):
        assert pod.mappings == whole.mappings
        assert pod.state is whole.state


def test_a_strange_entry_does_not_hide_its_neighbours(wire: dict[str, Any]):
    wire["runtime"]["ports"] = [None, "x", {"private": "?"}, *wire["runtime"]["ports"]]
    wire["ports"] = ["22/tcp", None, 8888]
    pod = pod_of(wire)
    assert pod.mapping(22) == PortMapping(22, 30022, "1.2.3.4", "tcp")
    assert pod.ports == ("22/tcp",)


@pytest.mark.parametrize(
    "item", [None, [], "p1", {}, {"id": None, "env": {}}, {"id": "", "env": {}}, {"id": {"x": 1}, "env": {}}]
)
def test_an_item_that_is_no_pod_is_refused(item: object):
    with pytest.raises(Malformed):
        pod_of(item)


@pytest.mark.parametrize("env", ["missing", [], "A=b", 3])
def test_a_pod_whose_owner_cannot_be_told_is_refused(wire: dict[str, Any], env: object):
    bent = {name: value for name, value in wire.items() if name != "env"}
    if env != "missing":
        bent["env"] = env
    with pytest.raises(Malformed, match="p1 is shown without its environment"):
        pod_of(bent)
    stamp = Stamp("inst/ns/sweep/uid-1", "n1")
    assert pod_of(bent, stamp=stamp).stamp == stamp


@pytest.mark.parametrize("env", [None, {}, {"A": "b"}, {"GPUPOD_OWNER": "x"}, {"GPUPOD_OWNER": 1, "GPUPOD_NONCE": "n"}])
def test_a_pod_without_both_stamps_is_nobody_s(wire: dict[str, Any], env: object):
    assert pod_of({**wire, "env": env}).stamp is None


@pytest.mark.parametrize("status", ["EXITED", "TERMINATED", "ERROR"])
def test_a_stopped_pod_s_stale_runtime_is_not_shown(wire: dict[str, Any], status: str):
    pod = pod_of({**wire, "status": status})
    assert (pod.mappings, pod.has_runtime, pod.gpus_visible) == ((), False, None)


@pytest.mark.parametrize("runtime", [None, {}, {"telemetry": 1}])
def test_an_empty_runtime_is_none(wire: dict[str, Any], runtime: object):
    pod = pod_of({**wire, "runtime": runtime})
    assert (pod.has_runtime, pod.gpus_visible, pod.mappings) == (False, None, ())


def test_a_host_hint_needs_the_pod_s_own_id(wire: dict[str, Any]):
    wire["ssh"]["proxy"]["username"] = "another-64411eb2"
    assert pod_of(wire).host_hint is None
    wire["ssh"]["proxy"] = None
    assert pod_of(wire).placed is False


def test_a_network_volume_is_named(wire: dict[str, Any]):
    pod = pod_of({**wire, "mounts": {"network": [{"volumeId": "vol1", "path": "/workspace"}]}})
    assert (pod.network_volume_id, pod.persistent_gb) == ("vol1", None)


@pytest.mark.parametrize("cost", [Decimal(-1), Decimal("Infinity"), "free"])
def test_a_price_that_is_none_is_not_a_price(wire: dict[str, Any], cost: object):
    assert pod_of({**wire, "cost": cost}).cost_per_hour is None


def test_a_time_without_a_zone_is_utc(wire: dict[str, Any]):
    assert pod_of({**wire, "createdAt": "2026-11-30T11:00:00"}) == replace(pod_of(wire))


def test_offers_carry_prices_per_gpu_and_a_tier_without_price_has_none():
    item = {
        "id": "NVIDIA L40S",
        "name": "L40S",
        "memory": 48,
        "secure": True,
        "community": False,
        "price": {"secure": Decimal("0.86"), "community": 0, "serverless": Decimal("1.9")},
        "maxCount": {"secure": 8, "community": 0},
    }
    assert offer_of(item) == GpuOffer("NVIDIA L40S", "L40S", 48, True, False, Decimal("0.86"), None, 8, 0)


@pytest.mark.parametrize("item", [{"name": "L40S"}, None])
def test_a_hole_in_the_catalog_is_refused(item: object):
    with pytest.raises(Malformed):
        offer_of(item)


@pytest.mark.parametrize("item", [{"id": "v"}, {"dataCenter": "EU-RO-1"}, None])
def test_a_volume_that_cannot_be_placed_is_refused(item: object):
    with pytest.raises(Malformed):
        volume_of(item)
