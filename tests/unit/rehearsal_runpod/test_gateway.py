"""What every caller meets before its request is looked at."""

from __future__ import annotations

import aiohttp
import pytest

from gpupod_rehearsal.runpod import RunPodSimulator, VirtualClock


async def test_a_request_without_a_token_gets_the_literal_401(api):
    answer = await api.call("GET", "/v2/pods", Authorization="")
    assert (answer.status, answer.body) == (
        401,
        {"title": "Unauthorized", "status": 401, "detail": "missing bearer token"},
    )
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("agent", ["", "Python-urllib/3.11"])
async def test_a_client_without_a_name_of_its_own_is_banned_by_the_proxy_with_a_page(api, agent):
    answer = await api.call("GET", "/v2/pods", **{"User-Agent": agent})
    assert answer.status == 403
    assert "1010" in answer.text
    assert answer.headers["content-type"].startswith("text/html")


async def test_every_authenticated_answer_tells_the_quota_and_a_request_id(api):
    for method, path in (("GET", "/v2/pods"), ("GET", "/v2/pods/nope"), ("POST", "/v2/pods"), ("DELETE", "/v2/pods")):
        headers = (await api.call(method, path, {})).headers
        assert headers["ratelimit"].startswith('"minute";r=')
        assert '"day";q=' in headers["ratelimit-policy"]
        assert headers["x-request-id"]


async def test_a_method_the_path_does_not_know_is_405_with_allow(api):
    answer = await api.call("PUT", "/v2/pods", {})
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")
    assert answer.body["detail"] == "The requested method is not allowed for this path."


async def test_the_retired_api_is_gone_on_its_path_and_on_its_host(api):
    assert (await api.call("GET", "/v1/pods")).status == 410
    assert (await api.call("GET", "/pods", Host="rest.runpod.io")).status == 410


async def test_the_key_of_another_account_sees_nothing_and_404(api):
    pod = await api.running()
    other = api.of("other")
    assert await other.listed() == []
    for method, path in (("GET", f"/v2/pods/{pod}"), ("DELETE", f"/v2/pods/{pod}"), ("PATCH", f"/v2/pods/{pod}")):
        answer = await other.call(method, path, {})
        assert (answer.status, answer.body["detail"]) == (404, "resource not found")
    assert (await api.pod(pod))["status"] == "RUNNING"


async def test_a_key_without_the_scope_is_refused_with_403(api):
    reader, narrow = api.of("reader"), api.of("narrow")
    assert (await reader.call("POST", "/v2/pods", {})).status == 403
    assert (await reader.call("GET", "/v2/pods")).status == 200
    answer = await narrow.call("GET", "/v2/account")
    assert (answer.status, answer.body) == (403, {"title": "Forbidden", "status": 403, "detail": "access denied"})
    assert (await narrow.call("GET", "/v2/billing/balance")).status == 403
    assert (await narrow.call("GET", "/v2/catalog/gpus")).status == 200


async def test_a_quota_refuses_the_call_over_it_and_opens_again_with_its_window():
    async with (
        RunPodSimulator(clock=VirtualClock(), quotas={"minute": 2, "hour": 100}) as sim,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {sim.key()}"}) as session,
    ):
        assert [(await session.get(f"{sim.url}/v2/pods")).status for _ in range(2)] == [200, 200]
        refused = await session.get(f"{sim.url}/v2/pods")
        assert refused.status == 429
        assert (await refused.json(content_type=None))["detail"] == "rate limit exceeded for the minute window"
        assert refused.headers["Retry-After"] == "60"
        assert refused.headers["RateLimit"].startswith('"minute";r=0;t=60')
        assert '"hour";r=98' in refused.headers["RateLimit"]
        await sim.advance(60)
        assert (await session.get(f"{sim.url}/v2/pods")).status == 200


async def test_the_request_log_names_keys_and_pods_but_never_a_secret(api):
    pod = await api.create()
    await api.call("DELETE", f"/v2/pods/{pod['id']}")
    log = await api.call("GET", "/_sim/requests")
    assert [(e["method"], e["status"], e["key"], e["pod"]) for e in log.body["requests"]] == [
        ("POST", 201, "main", pod["id"]),
        ("DELETE", 204, "main", pod["id"]),
    ]
    assert api.sim.key() not in log.text


async def test_a_reset_connection_is_in_the_log_with_its_fault(api):
    api.sim.faults.add("drop", method="POST")
    with pytest.raises(aiohttp.ClientError):
        await api.call("POST", "/v2/pods", {})
    (entry,) = api.sim.journal.entries
    assert (entry.fault, entry.status) == ("drop", 0)


async def test_a_graphql_read_works_with_both_ways_to_show_the_key(api):
    pod = await api.running()
    query = {"query": "query { myself { id pods { id runtime { ports { privatePort publicPort } } } } }"}
    bearer = await api.call("POST", "/graphql", query)
    in_query = await api.call("POST", f"/graphql?api_key={api.sim.key()}", query, Authorization="")
    assert bearer.body == in_query.body
    assert bearer.body["data"]["myself"]["pods"][0]["id"] == pod
    assert bearer.body["data"]["myself"]["pods"][0]["runtime"]["ports"][0]["privatePort"] == 22
    assert api.sim.key() not in (await api.call("GET", "/_sim/requests")).text


async def test_graphql_reads_one_pod_and_gpu_types_and_refuses_to_write(api):
    pod = await api.create()
    one = await api.call(
        "POST", "/graphql", {"query": f'query {{ pod(input: {{podId: "{pod["id"]}"}}) {{ id name }} }}'}
    )
    assert one.body == {"data": {"pod": {"id": pod["id"], "name": "trainer-n1"}}}
    none = await api.call("POST", "/graphql", {"query": 'query { pod(input: {podId: "x"}) { id } }'})
    assert none.body == {"data": {"pod": None}}
    gpus = await api.call(
        "POST", "/graphql", {"query": 'query { gpuTypes(input: {id: "NVIDIA H200"}) { id memoryInGb } }'}
    )
    assert gpus.body == {"data": {"gpuTypes": [{"id": "NVIDIA H200", "memoryInGb": 141}]}}
    write = await api.call(
        "POST", "/graphql", {"query": f'mutation {{ podTerminate(input: {{podId: "{pod["id"]}"}}) }}'}
    )
    assert write.body["data"] is None
    assert write.body["errors"]
    strange = await api.call("POST", "/graphql", {"query": "query { myself { shoeSize } }"})
    assert strange.status == 400
    assert strange.body["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    assert await api.listed() == [pod["id"]]
