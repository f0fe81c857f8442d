"""RunPod's own SDK looks at the same account: what the operator says of its pods, another client finds, too."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpupod_rehearsal.demo.stage import API, NAMESPACE
from worldkit.fixtures import GPU, Theatre, is_true, phase, pod_id
from worldkit.vendor_sdk import NotInstalled, VendorSdk, installed


@pytest.fixture(scope="session")
def sdk_python() -> Path:
    try:
        return installed()
    except NotInstalled as error:
        pytest.skip(f"RunPod's SDK cannot be installed here: {error}")


@pytest.fixture
def sdk(sdk_python: Path, theatre: Theatre, tmp_path: Path) -> VendorSdk:
    """The SDK with the operator's key, which it wants in its environment."""
    theatre.recorder.persons = (str(sdk_python.parents[1]),)
    return VendorSdk(sdk_python, tmp_path, url=theatre.stage.runpod_url, key=theatre.stage.runpod_key)


async def pods(sdk: VendorSdk) -> list[dict[str, Any]]:
    (told,) = await sdk.ask(("get_pods",))
    assert "error" not in told, told
    return list(told["answer"])


async def test_the_sdk_sees_the_operators_pod_through_its_whole_life(sdk: VendorSdk, theatre: Theatre) -> None:
    assert await pods(sdk) == []
    await theatre.apply()
    ready = await theatre.until(lambda pod: is_true("Ready")(pod) and is_true("Registered")(pod))
    wanted = pod_id(ready)
    listed, single = await sdk.ask(("get_pods",), ("get_pod", wanted))
    assert listed["answer"] == [single["answer"]]
    seen = single["answer"]
    assert seen["id"] == wanted
    assert seen["desiredStatus"] == "RUNNING"
    assert seen["imageName"] == ready["spec"]["container"]["image"]
    assert seen["gpuCount"] == 1
    (ssh,) = [port for port in seen["runtime"]["ports"] if port["privatePort"] == 22]
    assert ssh["isIpPublic"]
    assert f"{ssh['ip']} {ssh['publicPort']}" in " ".join(await row(theatre))

    await theatre.apply(state="Stopped")
    await theatre.until(lambda pod: phase(pod) == "Stopped")
    (stopped,) = await pods(sdk)
    assert (stopped["id"], stopped["desiredStatus"]) == (wanted, "EXITED")

    await theatre.stage.kube.delete(API, "GpuPod", "one", NAMESPACE)
    await theatre.admin.wait_gone("GpuPod", "one", namespace=NAMESPACE, timeout=60)
    assert await pods(sdk) == []


async def row(theatre: Theatre) -> list[str]:
    """The columns of the object's row in the rendered map, once it is there."""

    def line(shown: dict[str, Any] | None) -> list[str]:
        lines = ((shown or {}).get("data") or {}).get("pods.conf", "").splitlines()
        return next((columns for text in lines if (columns := text.split())[:1] == ["one"]), [])

    return line(await theatre.admin.watch_until("ConfigMap", "pods-conf", lambda m: bool(line(m)), namespace=NAMESPACE))


async def test_what_the_sdk_shows_of_a_pod_holds_no_secret(sdk: VendorSdk, theatre: Theatre) -> None:
    await theatre.apply()
    await theatre.until(is_true("Ready"))
    shown = str(await pods(sdk))
    assert "GPUPOD_NONCE" in shown, "the environment is part of it"
    assert theatre.stage.runpod_key not in shown
    assert theatre.stage.hub_token not in shown


async def test_the_operator_reckons_with_the_price_that_the_sdk_shows(sdk: VendorSdk, theatre: Theatre) -> None:
    await theatre.apply()
    ready = await theatre.until(is_true("Ready"))
    catalog, gpu, unknown, seen = await sdk.ask(
        ("get_gpus",), ("get_gpu", GPU), ("get_gpu", f"{GPU} of tomorrow"), ("get_pods",)
    )
    assert GPU in {item["id"] for item in catalog["answer"]}
    assert unknown["error"] == "ValueError"
    (pod,) = seen["answer"]
    assert pod["machine"]["gpuDisplayName"] == gpu["answer"]["displayName"]
    paid = Decimal(str(pod["costPerHr"]))
    assert paid == Decimal(ready["status"]["cost"]["perHour"])
    assert paid >= Decimal(str(gpu["answer"]["securePrice"])), "the GPU and its disk"


async def test_a_client_with_another_key_or_with_writes_on_its_mind_changes_nothing(
    sdk: VendorSdk, sdk_python: Path, theatre: Theatre, tmp_path: Path
) -> None:
    await theatre.apply()
    before = pod_id(await theatre.until(is_true("Ready")))
    stranger = VendorSdk(sdk_python, tmp_path, url=theatre.stage.runpod_url, key="rpa_nobody")
    (refused,) = await stranger.ask(("get_pods",))
    assert refused["error"] == "AuthenticationError"
    ended, stopped = await sdk.ask(("terminate_pod", before), ("stop_pod", before))
    # the simulated vendor serves its old API for reading only, and says so
    assert {told["error"] for told in (ended, stopped)} == {"QueryError"}
    assert [pod["id"] for pod in await pods(sdk)] == [before]
    assert pod_id(await theatre.until(is_true("Ready"))) == before
