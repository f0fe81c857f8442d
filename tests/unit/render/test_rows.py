"""When a GpuPod has a row, what is in it, and what its condition says when it has none."""

from collections.abc import Callable

import pytest

from gpupod_operator.api.reasons import Reason
from gpupod_operator.render.rows import PodObject, row_of, short_gpu_type

Make = Callable[..., PodObject]

LIVE = {"host": "203.0.113.5", "port": 40022, "hostKey": "ssh-ed25519 AAAA"}
H100 = {"gpuType": "NVIDIA H100 80GB HBM3", "count": 2, "providerStatus": "RUNNING"}


def fields(pod: PodObject) -> tuple[object, ...] | None:
    row, _ = row_of(pod)
    return None if row is None else (row.name, row.host, row.port, row.gpus, row.gpu_type, row.label)


def verdict(pod: PodObject) -> tuple[bool, Reason]:
    _, said = row_of(pod)
    return said.registered, said.reason


def test_row_of_a_mapped_pod_comes_from_committed_status(make: Make):
    pod = make("pod-7", endpoint=LIVE, pod=H100)
    assert fields(pod) == ("pod-7", "203.0.113.5", 40022, 2, "H100", "pod-7")
    row, said = row_of(pod)
    assert row is not None
    assert (row.host_key, row.pod_id) == ("ssh-ed25519 AAAA", "p1")
    assert said.registered
    assert "gpus and type from the provider" in said.message
    assert "host and port from pod p1" in said.message


def test_name_and_label_of_the_spec_are_used(make: Make):
    pod = make("x", conf={"name": "pod-1-eval", "label": "thomas-pod-1"}, endpoint=LIVE, pod=H100)
    assert fields(pod) == ("pod-1-eval", "203.0.113.5", 40022, 2, "H100", "thomas-pod-1")


def test_label_falls_back_to_the_row_name(make: Make):
    assert fields(make("x", conf={"name": "pod-1"}, endpoint=LIVE, pod=H100))[-1] == "pod-1"  # type: ignore[index]


@pytest.mark.parametrize("count", [None, 0])
def test_gpus_falls_back_to_one(make: Make, count: int | None):
    pod = make("x", endpoint=LIVE, pod={**H100, "count": count})
    assert fields(pod)[3] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("vendor_id", "shown"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100 80GB PCIe", "NVIDIA-A100-80GB-PCIe"),
        ("NVIDIA  RTX\tA6000 ", "NVIDIA-RTX-A6000"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_gpu_type_is_short_label_then_raw_id_then_unknown(vendor_id: str | None, shown: str):
    assert short_gpu_type(vendor_id) == shown


def test_without_a_pod_there_is_no_row(make: Make):
    pod = make("x", pod_id=None)
    assert fields(pod) is None
    assert verdict(pod) == (False, Reason.NO_POD)


@pytest.mark.parametrize("word", ["EXITED", "TERMINATED"])
def test_a_pod_that_does_not_run_has_no_row(make: Make, word: str):
    pod = make("x", endpoint=LIVE, pod={**H100, "providerStatus": word})
    assert fields(pod) is None
    assert verdict(pod) == (False, Reason.POD_NOT_RUNNING)
    assert word in row_of(pod)[1].message


@pytest.mark.parametrize("word", ["RUNNING", "STARTING", "ERROR", "HIBERNATING", None])
def test_row_of_a_pod_that_may_run_stays(make: Make, word: str | None):
    assert fields(make("x", endpoint=LIVE, pod={**H100, "providerStatus": word})) is not None


def test_unmapped_pod_has_no_row_and_no_placeholder(make: Make):
    pod = make("x", pod=H100)
    assert fields(pod) is None
    assert verdict(pod) == (False, Reason.NO_ENDPOINT)


def test_publish_false_has_no_row(make: Make):
    pod = make("x", conf={"publish": False}, endpoint=LIVE, pod=H100)
    assert fields(pod) is None
    assert verdict(pod) == (False, Reason.PUBLISH_DISABLED)


def test_complete_override_renders_a_row_without_any_pod(make: Make):
    """S30, seed A2: `--update` on an absent row."""
    pod = make("pod-9", conf={"endpointOverride": {"host": "10.0.0.9", "port": 22}}, pod_id=None)
    assert fields(pod) == ("pod-9", "10.0.0.9", 22, 1, "unknown", "pod-9")
    assert verdict(pod) == (True, Reason.REGISTERED)


def test_override_pins_the_endpoint_only_and_gpus_follow(make: Make):
    conf = {"endpointOverride": {"host": "10.0.0.9", "port": 22}}
    pod = make("x", conf=conf, endpoint=LIVE, pod=H100)
    assert fields(pod) == ("x", "10.0.0.9", 22, 2, "H100", "x")
    assert verdict(pod) == (True, Reason.OVERRIDE_DIFFERS)
    assert "203.0.113.5:40022" in row_of(pod)[1].message


def test_override_equal_to_live_is_no_difference(make: Make):
    conf = {"endpointOverride": {"host": "203.0.113.5", "port": 40022}}
    assert verdict(make("x", conf=conf, endpoint=LIVE, pod=H100)) == (True, Reason.REGISTERED)


@pytest.mark.parametrize(
    ("override", "address"),
    [({"host": "10.0.0.9"}, ("10.0.0.9", 40022)), ({"port": 2222}, ("203.0.113.5", 2222))],
)
def test_partial_override_takes_the_other_half_from_the_pod(
    make: Make, override: dict[str, object], address: tuple[str, int]
):
    pod = make("x", conf={"endpointOverride": override}, endpoint=LIVE, pod=H100)
    assert fields(pod)[1:3] == address  # type: ignore[index]
    assert verdict(pod) == (True, Reason.OVERRIDE_DIFFERS)


@pytest.mark.parametrize(("override", "missing"), [({"host": "10.0.0.9"}, "port"), ({"port": 2222}, "host")])
def test_partial_override_without_a_live_endpoint_is_incomplete(make: Make, override: dict[str, object], missing: str):
    pod = make("x", conf={"endpointOverride": override}, pod=H100)
    assert fields(pod) is None
    assert verdict(pod) == (False, Reason.OVERRIDE_INCOMPLETE)
    assert f"add endpointOverride.{missing}" in row_of(pod)[1].message


def test_partial_override_does_not_take_the_endpoint_of_a_stopped_pod(make: Make):
    pod = make("x", conf={"endpointOverride": {"host": "h"}}, endpoint=LIVE, pod={**H100, "providerStatus": "EXITED"})
    assert verdict(pod) == (False, Reason.OVERRIDE_INCOMPLETE)


def test_override_with_a_pod_id_ends_with_that_pod(make: Make):
    conf = {"endpointOverride": {"host": "10.0.0.9", "port": 22, "podId": "p1"}}
    assert fields(make("x", conf=conf, endpoint=LIVE, pod=H100))[1] == "10.0.0.9"  # type: ignore[index]
    moved = make("x", conf=conf, endpoint=LIVE, pod=H100, pod_id="p2")
    assert fields(moved)[1] == "203.0.113.5"  # type: ignore[index]
    assert fields(make("x", conf=conf, pod_id=None)) is None


def test_removing_the_override_returns_to_live_values(make: Make):
    assert verdict(make("x", endpoint=LIVE, pod=H100)) == (True, Reason.REGISTERED)


@pytest.mark.parametrize(
    ("conf", "endpoint", "pod"),
    [
        ({"endpointOverride": {"host": "h\nProxyCommand evil", "port": 22}}, LIVE, H100),
        ({}, {**LIVE, "host": "h ProxyCommand"}, H100),
        ({"label": "a b"}, LIVE, H100),
        ({}, LIVE, {**H100, "gpuType": "H100\u202e"}),
    ],
)
def test_value_that_is_not_one_plain_word_never_reaches_the_file(
    make: Make, conf: dict[str, object], endpoint: dict[str, object], pod: dict[str, object]
):
    odd = make("x", conf=conf, endpoint=endpoint, pod=pod)
    assert fields(odd) is None
    assert verdict(odd) == (False, Reason.REGISTRATION_FAILED)


@pytest.mark.parametrize("key", ["", "ssh-ed25519", "ssh-ed25519 AAAA\nevil ssh-ed25519 BBBB"])
def test_malformed_host_key_pins_nothing(make: Make, key: str):
    row, _ = row_of(make("x", endpoint={**LIVE, "hostKey": key}, pod=H100))
    assert row is not None
    assert row.host_key is None
