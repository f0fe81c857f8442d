"""The client against literal answers: what goes out, what comes in, what is never repeated."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import aiohttp
import pytest

from gpupod_operator import __version__
from gpupod_operator.core.ownership import OwnedPod, claim
from gpupod_operator.core.provider import (
    AccountIdentity,
    CreateRequest,
    Failure,
    NetworkVolume,
    PatchRequest,
    ProviderPod,
    ProviderState,
    Stamp,
)
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod import Balance, Governor, IncompleteAnswer, RunPodClient, pages, requests
from gpupod_operator.runpod.governor import MOST_IN_FLIGHT

Make = Callable[..., dict[str, object]]
NO_STOCK = (
    "There are no longer any instances available with the requested specifications. Please refresh and try again."
)
REQUEST = CreateRequest(
    name="sweep-n1",
    image="runpod/pytorch:2.8",
    gpu_type_id="NVIDIA H100 80GB HBM3",
    gpu_count=2,
    cloud="SECURE",
    data_centers=(),
    disk_gb=50,
    ports=("22/tcp",),
    stamp=Stamp("inst/ns/sweep/uid-1", "n1"),
)


def owned(pod_id: str = "p1") -> OwnedPod:
    shown = ProviderPod(pod_id, "x", ProviderState.RUNNING, "RUNNING", stamp=Stamp("inst/ns/sweep/uid-1", "n1"))
    handle = claim(shown, instance="inst", uid="uid-1", adopt_id=None)
    assert isinstance(handle, OwnedPod)
    return handle


async def failure_of(call: Any) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await call
    return raised.value


# What goes out.


async def test_every_request_names_us_and_carries_the_key_in_one_header_only(desk, client: RunPodClient, secret: str):
    desk.say({"pods": []})
    await client.list_pods()
    asked = desk.asked[0]
    assert asked.headers["User-Agent"] == f"gpupod-operator/{__version__}"
    assert asked.headers["Authorization"] == f"Bearer {secret}"
    assert secret not in f"{asked.path} {asked.query} {asked.body}"


async def test_a_base_url_may_name_the_version_or_not(desk, client_of: Callable[..., RunPodClient]):
    for suffix in ("", "/", "/v2", "/v2/"):
        desk.say({"pods": []})
        await client_of(base_url=desk.url + suffix).list_pods()
    assert {asked.path for asked in desk.asked} == {"/v2/pods"}


async def test_a_create_sends_exactly_what_is_asked(desk, client: RunPodClient, make_pod: Make):
    desk.say(make_pod(), 201)
    pod = await client.create_pod(REQUEST, {"A": "b", "GPUPOD_NONCE": "forged"})
    assert pod.id == "p1"
    assert (desk.asked[0].method, desk.asked[0].path) == ("POST", "/v2/pods")
    assert desk.asked[0].body == {
        "name": "sweep-n1",
        "image": "runpod/pytorch:2.8",
        "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 2},
        "cloud": "SECURE",
        "disk": 50,
        "ports": ["22/tcp"],
        "env": {"A": "b", "GPUPOD_OWNER": "inst/ns/sweep/uid-1", "GPUPOD_NONCE": "n1"},
    }


async def test_a_create_sends_every_wish_under_the_vendor_s_name(desk, client: RunPodClient, make_pod: Make):
    desk.say(make_pod(), 201).say(make_pod(), 201)
    full = replace(
        REQUEST,
        data_centers=("US-KS-2",),
        entrypoint=("bash",),
        command=("-c", "x"),
        registry="reg1",
        network_volume_id="vol1",
        network_volume_path="/workspace",
        min_cuda_version="12.8",
        min_ram_per_gpu_gb=100,
        min_vcpu_per_gpu=8,
    )
    await client.create_pod(full, {})
    body = desk.asked[0].body
    assert body["dataCenterIds"] == ["US-KS-2"]
    assert (body["entrypoint"], body["cmd"], body["registry"]) == (["bash"], ["-c", "x"], "reg1")
    assert body["mounts"] == {"network": [{"volumeId": "vol1", "path": "/workspace"}]}
    assert body["gpu"] == {
        "id": "NVIDIA H100 80GB HBM3",
        "count": 2,
        "minCudaVersion": "12.8",
        "minRamPerGpu": 100,
        "minVcpuCountPerGpu": 8,
    }
    await client.create_pod(replace(REQUEST, persistent_gb=20, persistent_path="/data"), {})
    assert desk.asked[1].body["mounts"] == {"persistent": {"size": 20, "path": "/data"}}


async def test_a_body_that_cannot_be_formed_is_not_sent_and_shows_no_value(desk, client: RunPodClient):
    error = await failure_of(client.create_pod(replace(REQUEST, gpu_count=0, image=""), {"TOKEN": "topsecretvalue"}))
    assert error.failure is Failure.INVALID
    assert "count: Input should be greater than or equal to 1" in error.detail
    assert "topsecretvalue" not in str(error)
    assert desk.asked == []


async def test_a_change_sends_only_what_it_names(desk, client: RunPodClient, make_pod: Make):
    desk.say(make_pod())
    await client.patch_pod(owned(), PatchRequest(ports=("22/tcp",)), {"ignored": "x"})
    assert (desk.asked[0].method, desk.asked[0].path, desk.asked[0].body) == (
        "PATCH",
        "/v2/pods/p1",
        {"ports": ["22/tcp"]},
    )


async def test_a_changed_environment_must_keep_the_stamps(desk, client: RunPodClient, make_pod: Make):
    error = await failure_of(client.patch_pod(owned(), PatchRequest(send_env=True), {"A": "b"}))
    assert error.failure is Failure.INVALID
    assert desk.asked == []
    desk.say(make_pod())
    env = {"A": "b", "GPUPOD_OWNER": "inst/ns/sweep/uid-1", "GPUPOD_NONCE": "n1"}
    await client.patch_pod(owned(), PatchRequest(send_env=True), env)
    assert desk.asked[0].body == {"env": env}


async def test_start_and_stop_are_actions_and_delete_is_delete(desk, client: RunPodClient, make_pod: Make):
    desk.say(make_pod(status="EXITED")).say(make_pod(status="PROVISIONING")).say(None, 204)
    stopped = await client.stop_pod(owned())
    assert stopped is not None
    assert stopped.state is ProviderState.EXITED
    await client.start_pod(owned())
    await client.delete_pod(owned())
    assert [(asked.method, asked.path, asked.body) for asked in desk.asked] == [
        ("POST", "/v2/pods/p1/action", {"action": "stop"}),
        ("POST", "/v2/pods/p1/action", {"action": "start"}),
        ("DELETE", "/v2/pods/p1", None),
    ]


async def test_an_id_cannot_leave_its_place_in_the_path(desk, client: RunPodClient):
    desk.refuse(404, "pod not found")
    await failure_of(client.get_pod("../account?x=1"))
    assert desk.asked[0].path == "/v2/pods/../account?x=1"
    assert desk.asked[0].query == {}


# What comes in.


async def test_prices_are_exact(desk, client: RunPodClient, make_pod: Make):
    desk.literal(json.dumps(make_pod()).replace("5.9801", "0.1000000000000000000003"))
    assert (await client.get_pod("p1")).cost_per_hour == Decimal("0.1000000000000000000003")


async def test_a_pod_under_another_id_is_no_answer(desk, client: RunPodClient, make_pod: Make):
    desk.say(make_pod("p2"))
    assert (await failure_of(client.get_pod("p1"))).failure is Failure.UNAVAILABLE


@pytest.mark.parametrize("document", [[], {"id": None}, {}, "x", None, 3])
async def test_a_created_pod_without_an_id_may_exist(desk, client: RunPodClient, document: object):
    desk.say(document, 201)
    assert (await failure_of(client.create_pod(REQUEST, {}))).failure is Failure.AMBIGUOUS


async def test_a_created_pod_shown_without_its_environment_is_ours(desk, client: RunPodClient):
    desk.say({"id": "p9"}, 201)
    assert (await client.create_pod(REQUEST, {})).stamp == REQUEST.stamp


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_a_create_is_made_by_a_201_alone(desk, client: RunPodClient, make_pod: Make, status: int):
    desk.say(make_pod(), status)
    assert (await failure_of(client.create_pod(REQUEST, {}))).failure is Failure.AMBIGUOUS


async def test_a_delete_is_answered_by_a_204_alone(desk, client: RunPodClient):
    desk.say({"deleted": True}, 200).refuse(404, "pod not found").refuse(429, "slow", headers={"Retry-After": "9999"})
    assert (await failure_of(client.delete_pod(owned()))).failure is Failure.AMBIGUOUS
    assert (await failure_of(client.delete_pod(owned()))).failure is Failure.NOT_FOUND
    assert (await failure_of(client.delete_pod(owned()))).failure is Failure.THROTTLED


async def test_a_full_host_is_told_on_start(desk, client: RunPodClient):
    desk.refuse(400, "There are not enough free GPUs on the host machine to start this pod.")
    assert (await failure_of(client.start_pod(owned()))).failure is Failure.HOST_FULL


async def test_an_endless_answer_is_refused(desk, client: RunPodClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(requests, "LARGEST_ANSWER", 1000)
    desk.literal(json.dumps({"pods": [], "padding": "x" * 5000}))
    error = await failure_of(client.list_pods())
    assert error.failure is Failure.UNAVAILABLE
    assert "over 1000 bytes" in error.detail


@pytest.mark.parametrize("text", ['{"pods": [NaN]}', '{"pods": ' + "[" * 100_000, "\xff", '{"pods": []'])
async def test_what_is_no_json_is_no_answer(desk, client: RunPodClient, text: str):
    desk.literal(text)
    assert (await failure_of(client.list_pods())).failure is Failure.UNAVAILABLE


async def test_a_redirect_is_not_followed_with_the_key(desk, client: RunPodClient):
    desk.say({}, 302, headers={"Location": f"{desk.url}/elsewhere"})
    assert (await failure_of(client.list_pods())).failure is Failure.UNAVAILABLE
    assert len(desk.asked) == 1


async def test_cloudflare_s_ban_with_a_200_was_stopped_before_the_api(desk, client: RunPodClient):
    banned = {"title": "Error 1010: Access denied", "cloudflare_error": True, "error_code": 1010}
    desk.say(banned, 201).literal("<html>error code: 1010</html>", status=201, content_type="text/html")
    assert (await failure_of(client.create_pod(REQUEST, {}))).failure is Failure.UNAVAILABLE
    assert (await failure_of(client.create_pod(REQUEST, {}))).failure is Failure.UNAVAILABLE


# Lists.


async def test_every_page_is_read(desk, client_of: Callable[..., RunPodClient], make_pod: Make):
    desk.say({"pods": [make_pod("a")], "pagination": {"nextCursor": "c+1=", "hasNextPage": True}})
    desk.say({"pods": [make_pod("b")], "pagination": {"nextCursor": "c2", "hasNextPage": True}})
    desk.say({"pods": [], "pagination": {"nextCursor": None, "hasNextPage": False}})
    assert [pod.id for pod in await client_of(page_limit=1).list_pods()] == ["a", "b"]
    assert [asked.query for asked in desk.asked] == [
        {"limit": "1"},
        {"limit": "1", "cursor": "c+1="},
        {"limit": "1", "cursor": "c2"},
    ]


async def test_the_august_list_has_no_pagination_block(desk, client: RunPodClient, make_pod: Make):
    desk.say({"pods": [make_pod("a"), make_pod("b")]})
    assert len(await client.list_pods()) == 2


@pytest.mark.parametrize(
    "answers",
    [
        [{"pods": [], "pagination": {"nextCursor": None, "hasNextPage": True}}],
        [{"pods": [], "pagination": {"nextCursor": "", "hasNextPage": True}}],
        [{"pods": [], "pagination": {"nextCursor": 7, "hasNextPage": True}}],
        [{"pods": [], "pagination": {"nextCursor": "x"}}],
        [{"pods": [], "pagination": []}],
        [{"pods": [], "pagination": {"nextCursor": "x", "hasNextPage": True}}] * 2,
        [{"pods": None}],
        [{"items": []}],
        [{"pods": {}}],
        [{"pods": [None]}],
        [{"pods": [{"name": "no id", "env": {}}]}],
        [{"pods": [{"id": "no-env"}]}],
        [{"pods": [{"id": "a", "env": {}}, {"id": "a", "env": {}}]}],
        [
            {"pods": [{"id": "a", "env": {}}], "pagination": {"nextCursor": "x", "hasNextPage": True}},
            {"pods": [{"id": "a", "env": {}}], "pagination": {"nextCursor": None, "hasNextPage": False}},
        ],
    ],
)
async def test_half_a_list_is_no_list(desk, client: RunPodClient, answers: list[dict[str, object]]):
    for page in answers:
        desk.say(page)
    error = await failure_of(client.list_pods())
    assert isinstance(error, IncompleteAnswer)
    assert error.failure is Failure.UNAVAILABLE
    assert desk.script == []


async def test_cursors_that_never_end_are_left(desk, client: RunPodClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pages, "MOST_PAGES", 3)
    for number in range(3):
        desk.say({"pods": [], "pagination": {"nextCursor": f"c{number}", "hasNextPage": True}})
    assert isinstance(await failure_of(client.list_pods()), IncompleteAnswer)


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (401, Failure.UNAUTHORIZED),
        (403, Failure.FORBIDDEN),
        (404, Failure.UNAVAILABLE),
        (410, Failure.API_GONE),
        (422, Failure.UNAVAILABLE),
        (500, Failure.UNAVAILABLE),
    ],
)
async def test_a_page_that_fails_takes_the_whole_list_with_it(
    desk, client: RunPodClient, make_pod: Make, status: int, failure: Failure
):
    desk.say({"pods": [make_pod("a")], "pagination": {"nextCursor": "c1", "hasNextPage": True}}).refuse(status, "x")
    assert (await failure_of(client.list_pods())).failure is failure


async def test_catalog_and_volumes_are_read(desk, client: RunPodClient):
    desk.say({"gpus": [{"id": "NVIDIA L40S", "name": "L40S", "price": {"secure": 0.86}}]})
    desk.say(
        {"networkVolumes": [{"id": "v1", "name": "data", "size": 50, "dataCenter": "EU-RO-1", "type": "STANDARD"}]}
    )
    desk.say({"id": "v1", "name": "data", "size": 50, "dataCenter": "EU-RO-1"})
    (offer,) = await client.gpu_offers()
    assert offer.price_secure == Decimal("0.86")
    assert await client.network_volumes() == (NetworkVolume("v1", "data", 50, "EU-RO-1"),)
    assert await client.network_volume("v1") == NetworkVolume("v1", "data", 50, "EU-RO-1")


async def test_a_catalog_with_a_hole_is_no_catalog(desk, client: RunPodClient):
    desk.say({"gpus": [{"id": "NVIDIA L40S"}, {"name": "no id"}]})
    assert (await failure_of(client.gpu_offers())).failure is Failure.UNAVAILABLE


# The account.


async def test_the_account_has_the_vendor_s_id(desk, client: RunPodClient):
    desk.say({"id": "acct_1", "email": None})
    who = await client.account()
    assert (who.id, who.verified) == ("acct_1", True)


@pytest.mark.parametrize("status", [403, 404, 405, 501])
async def test_a_key_that_may_not_ask_stands_for_itself(desk, client: RunPodClient, status: int):
    desk.refuse(status, "x")
    who = await client.account()
    assert who == AccountIdentity(who.key_fingerprint, who.key_fingerprint, verified=False)


@pytest.mark.parametrize("status", [403, 404, 501, 502])
async def test_a_proxy_s_page_says_nothing_of_the_account(desk, client: RunPodClient, status: int):
    desk.literal("<html>error code: 1010</html>", status=status, content_type="text/html")
    assert (await failure_of(client.account())).failure is Failure.UNAVAILABLE


async def test_balance_limits_and_keys(desk, client: RunPodClient):
    desk.say({"balanceAmount": 12.34, "billingMode": "PREPAID"}).say({"spendRate": {"limit": 80}})
    desk.say({"keys": ["ssh-ed25519 AAAA x"]}).say({"balanceAmount": None})
    assert await client.balance() == Balance(Decimal("12.34"), "PREPAID")
    assert (await client.account_limits())["spendRate"] == {"limit": 80}
    assert await client.ssh_keys() == ("ssh-ed25519 AAAA x",)
    assert (await failure_of(client.balance())).failure is Failure.UNAVAILABLE


# Faults, repeats and accounting.


async def test_a_create_is_repeated_on_a_429_and_made_once(desk, client: RunPodClient, make_pod: Make, calls):
    desk.refuse(429, "x", headers={"Retry-After": "0"}).say(make_pod(), 201)
    assert (await client.create_pod(REQUEST, {})).id == "p1"
    assert calls == [("create_pod", "Throttled"), ("create_pod", "ok")]


async def test_a_429_is_repeated_a_few_times_only(desk, client: RunPodClient):
    for _ in range(3):
        desk.refuse(429, "x", headers={"Retry-After": "0"})
    error = await failure_of(client.create_pod(REQUEST, {}))
    assert (error.failure, error.status) == (Failure.THROTTLED, 429)
    assert desk.script == []


async def test_a_long_wait_is_left_to_the_caller(desk, client: RunPodClient):
    desk.refuse(429, "x", headers={"Retry-After": "1800"})
    error = await failure_of(client.create_pod(REQUEST, {}))
    assert error.failure is Failure.THROTTLED
    assert error.retry_after is not None
    assert 1700 < error.retry_after <= 1800
    assert len(desk.asked) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_nothing_else_is_repeated(desk, client: RunPodClient, calls, status: int):
    desk.refuse(status, "x")
    assert (await failure_of(client.create_pod(REQUEST, {}))).failure is Failure.AMBIGUOUS
    assert calls == [("create_pod", "Ambiguous")]


async def test_a_connection_cut_after_a_create_is_ambiguous_and_not_repeated(desk, client: RunPodClient, calls):
    desk.literal("", cut=True)
    assert (await failure_of(client.create_pod(REQUEST, {}))).failure is Failure.AMBIGUOUS
    assert calls == [("create_pod", "Ambiguous")]
    assert len(desk.asked) == 1


async def test_a_create_that_outlasts_our_patience_is_ambiguous(desk, client_of: Callable[..., RunPodClient]):
    held = asyncio.Event()
    desk.literal("{}", held=held)
    client = client_of(timeout=aiohttp.ClientTimeout(total=0.05))
    error = await failure_of(client.create_pod(REQUEST, {}))
    held.set()
    assert (error.failure, error.detail) == (Failure.AMBIGUOUS, "no answer in time")


async def test_a_refused_connection_made_nothing(client_of: Callable[..., RunPodClient], secret: str):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        client = client_of(base_url=f"http://127.0.0.1:{bound.getsockname()[1]}")
        error = await failure_of(client.create_pod(REQUEST, {}))
    assert error.failure is Failure.UNAVAILABLE
    assert "cannot connect to 127.0.0.1" in error.detail
    assert error.__cause__ is None
    assert secret not in repr(error)


async def test_an_error_keeps_the_request_id_and_shows_no_secret(desk, client: RunPodClient, secret: str):
    desk.refuse(400, f"key {secret} and TOKEN=topsecretvalue", f"$.env.TOKEN: topsecretvalue / {secret}")
    error = await failure_of(client.create_pod(REQUEST, {"TOKEN": "topsecretvalue"}))
    assert error.request_id == "req-1"
    shown = f"{error} {error.detail} {error.errors} {error!r} {error.__context__!r}"
    assert secret not in shown
    assert "topsecretvalue" not in shown


async def test_every_request_is_reported_with_its_outcome(desk, client: RunPodClient, make_pod: Make, calls):
    desk.say({"pods": []}).refuse(404, "pod not found").say(make_pod())
    await client.list_pods()
    await failure_of(client.get_pod("p1"))
    await client.get_pod("p1")
    assert calls == [("list_pods", "ok"), ("get_pod", "NotFound"), ("get_pod", "ok")]


async def test_a_caller_that_is_cancelled_leaves_the_quota_s_count_right(desk, client_of: Callable[..., RunPodClient]):
    governor, held = Governor(), asyncio.Event()
    client = client_of(governor=governor)
    for _ in range(MOST_IN_FLIGHT):
        desk.literal("{}", held=held)
    tasks = [asyncio.create_task(client.account()) for _ in range(MOST_IN_FLIGHT)]
    while len(desk.asked) < MOST_IN_FLIGHT:
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    desk.say({"id": "acct_1"})
    assert (await client.account()).id == "acct_1"
    held.set()


# The system log.

EVENTS = (
    ': hello\n\nid: 1\ndata: {"ts":"t","source":"system","line":"create container: still fetching image x"}\n\n'
    'id: 2\ndata: {"ts":"t","source":"container","line":"not this"}\n\n'
    'data: no json\n\ndata: ["no", "object"]\n\nevent: log\r\ndata: {"line":\r\ndata: "key rpa_ABCDEFGH"}\r\n\r\n'
)


async def test_the_system_log_is_read_oldest_first_without_tokens(desk, client: RunPodClient):
    desk.literal(EVENTS, content_type="text/event-stream")
    assert await client.system_log("p1", 50) == ("create container: still fetching image x", "key ***")
    asked = desk.asked[0]
    assert (asked.path, asked.query) == ("/v2/pods/p1/logs", {"source": "system", "tail": "50"})
    assert asked.headers["Accept"] == "text/event-stream"


async def test_the_system_log_ends_with_enough_lines(desk, client: RunPodClient):
    desk.literal(EVENTS, content_type="text/event-stream")
    assert await client.system_log("p1", 1) == ("create container: still fetching image x",)


async def test_a_refused_log_is_an_error(desk, client: RunPodClient):
    desk.refuse(404, "pod not found")
    assert (await failure_of(client.system_log("p1"))).failure is Failure.NOT_FOUND
