"""Faults of the API: what a client is told, and what is true."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from gpupod_rehearsal.runpod import UnknownFaultError


async def truth(api):
    return [pod for pod in (await api.call("GET", "/_sim/pods")).body["pods"] if pod["alive"]]


async def happens(condition):
    """Let the server's tasks run until something has happened in it; real time plays no part."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never happened")


async def test_create_then_500_makes_a_pod_that_bills(api, sim, body):
    sim.faults.add("create-then-500")
    answer = await api.call("POST", "/v2/pods", body())
    assert (answer.status, "Something went wrong" in answer.body["detail"]) == (500, True)
    assert [pod["nonce"] for pod in await truth(api)] == ["n1"]
    assert (await api.call("POST", "/v2/pods", body())).status == 201


async def test_create_then_drop_cuts_the_connection_after_the_pod_is_made(api, sim, body):
    sim.faults.add("create-then-drop")
    with pytest.raises(aiohttp.ClientError):
        await api.call("POST", "/v2/pods", body())
    assert len(await truth(api)) == 1


async def test_create_then_slow_answers_when_its_seconds_have_passed(api, sim, body):
    sim.faults.add("create-then-slow", seconds=120)
    request = asyncio.create_task(api.call("POST", "/v2/pods", body()))
    await happens(lambda: sim.cloud.pods)
    await sim.advance(119)
    assert not request.done()
    await sim.advance(1)
    assert (await request).status == 201


async def test_create_then_garbage_is_a_201_that_does_not_parse(api, sim, body):
    sim.faults.add("create-then-garbage")
    with pytest.raises(json.JSONDecodeError):
        await api.call("POST", "/v2/pods", body())
    assert len(await truth(api)) == 1


async def test_create_vanishes_gives_an_id_that_never_exists(api, sim, body):
    sim.faults.add("create-vanishes")
    made = await api.call("POST", "/v2/pods", body())
    assert made.status == 201
    await sim.advance(60)
    assert (await api.call("GET", f"/v2/pods/{made.body['id']}")).status == 404
    assert await api.listed() == []


async def test_post_create_404_hides_a_fresh_pod_from_every_verb_for_its_seconds(api, sim):
    sim.faults.add("post-create-404", seconds=30)
    pod = (await api.create())["id"]
    assert (await api.call("GET", f"/v2/pods/{pod}")).status == 404
    assert (await api.call("DELETE", f"/v2/pods/{pod}")).status == 404
    await sim.advance(30)
    assert (await api.pod(pod))["status"] == "RUNNING"


async def test_list_lag_lacks_the_fresh_and_keeps_the_deleted(api, sim):
    sim.faults.add("list-lag", fresh=10, deleted=20)
    pod = (await api.create())["id"]
    assert await api.listed() == []
    assert (await api.pod(pod))["id"] == pod
    await sim.advance(10)
    assert await api.listed() == [pod]
    await api.act(pod, "terminate")
    assert await api.listed() == [pod]
    await sim.advance(20)
    assert await api.listed() == []


async def test_a_truncated_page_claims_more_without_a_cursor(api, sim):
    made = [(await api.create())["id"] for _ in range(4)]
    sim.faults.add("truncated-page")
    page = (await api.call("GET", "/v2/pods")).body
    assert len(page["pods"]) == 2
    assert page["pagination"] == {"nextCursor": None, "hasNextPage": True}
    assert sorted(await api.listed()) == sorted(made)


async def test_a_repeated_cursor_leads_in_circles(api, sim):
    for _ in range(4):
        await api.create()
    cursor = (await api.call("GET", "/v2/pods?limit=2")).body["pagination"]["nextCursor"]
    sim.faults.add("repeated-cursor")
    page = (await api.call("GET", f"/v2/pods?limit=2&cursor={cursor}")).body
    assert page["pagination"] == {"nextCursor": cursor, "hasNextPage": True}


async def test_an_empty_list_hides_living_pods_once(api, sim):
    pod = (await api.create())["id"]
    sim.faults.add("empty-list", count=1)
    assert await api.listed() == []
    assert await api.listed() == [pod]


async def test_duplicate_ids_repeat_a_pod_on_a_page(api, sim):
    pod = (await api.create())["id"]
    sim.faults.add("duplicate-ids")
    assert await api.listed() == [pod, pod]


async def test_rate_limited_refuses_before_anything_is_done(api, sim, body):
    sim.faults.add("rate-limited", seconds=12, window="hour", method="POST")
    answer = await api.call("POST", "/v2/pods", body())
    assert (answer.status, answer.headers["retry-after"]) == (429, "12")
    assert answer.body["detail"] == "rate limit exceeded for the hour window"
    assert '"hour";r=0;t=12' in answer.headers["ratelimit"]
    assert await truth(api) == []


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        ("html-502", 502, "text/html"),
        ("cloudflare-1010", 403, "text/html"),
        ("api-gone-410", 410, "application/problem+json"),
        ("http-500", 500, "application/problem+json"),
        ("forbidden", 403, "application/problem+json"),
        ("unauthorized", 401, "application/problem+json"),
    ],
)
async def test_an_answer_of_refusal_leaves_the_pod_untouched(api, sim, fault, status, kind):
    pod = (await api.create())["id"]
    rule = sim.faults.add(fault, method="DELETE", count=1)
    answer = await api.call("DELETE", f"/v2/pods/{pod}")
    assert answer.status == status
    assert answer.headers["content-type"].startswith(kind)
    assert rule.hits == 1
    assert await api.listed() == [pod]


async def test_drop_does_nothing_and_answer_lost_does_everything(api, sim, body):
    sim.faults.add("drop", method="POST")
    with pytest.raises(aiohttp.ClientError):
        await api.call("POST", "/v2/pods", body())
    assert await truth(api) == []
    pod = await api.running()
    sim.faults.add("answer-lost", path=f"/v2/pods/{pod}/action")
    with pytest.raises(aiohttp.ClientError):
        await api.act(pod, "stop")
    assert (await api.pod(pod))["status"] == "EXITED"


async def test_slow_delays_what_is_done(api, sim):
    pod = (await api.create())["id"]
    sim.faults.add("slow", seconds=30, method="DELETE")
    request = asyncio.create_task(api.call("DELETE", f"/v2/pods/{pod}"))
    await happens(lambda: sim.faults.rules[0].hits)
    await sim.advance(29)
    assert sim.cloud.pods[pod].alive
    await sim.advance(1)
    assert (await request).status == 204


async def test_delete_lingers_shows_a_terminated_pod_that_bills_nothing(api, sim):
    pod = await api.running()
    sim.faults.add("delete-lingers", seconds=60)
    assert (await api.call("DELETE", f"/v2/pods/{pod}")).status == 204
    shown = await api.pod(pod)
    assert (shown["status"], shown["cost"], shown["actions"]) == ("TERMINATED", 0.0, [])
    assert await api.listed() == [pod]
    billed = (await api.ledger())["total"]
    await sim.advance(60)
    assert (await api.call("GET", f"/v2/pods/{pod}")).status == 404
    assert await api.listed() == []
    assert (await api.ledger())["total"] == billed


async def test_delete_404_alive_lies_about_a_pod_that_bills_on(api, sim):
    pod = await api.running()
    sim.faults.add("delete-404-alive")
    assert (await api.call("DELETE", f"/v2/pods/{pod}")).status == 404
    assert (await api.pod(pod))["status"] == "RUNNING"
    assert (await api.call("DELETE", f"/v2/pods/{pod}")).status == 204


async def test_unknown_status_missing_and_unknown_fields_bend_what_is_shown(api, sim):
    pod = await api.running()
    for fault, params in (
        ("unknown-status", {"status": "MIGRATING"}),
        ("missing-fields", {"fields": "runtime, cost"}),
        ("unknown-fields", {"field": "telemetry"}),
    ):
        sim.faults.add(fault, pod=pod, **params)
    shown = await api.pod(pod)
    assert shown["status"] == "MIGRATING"
    assert not {"runtime", "cost"} & set(shown)
    assert shown["telemetry"] == {"seen": True}


async def test_faults_are_armed_listed_and_disarmed_over_http(api):
    armed = await api.call(
        "POST",
        "/_sim/faults",
        [{"name": "html-502", "count": 2, "target": {"method": "GET"}, "params": {"status": 504}}],
    )
    assert armed.status == 201
    assert (await api.call("GET", "/v2/pods")).status == 504
    listed = (await api.call("GET", "/_sim/faults")).body
    assert [(rule["name"], rule["left"], rule["hits"]) for rule in listed["faults"]] == [("html-502", 1, 1)]
    assert "wedge-later" in listed["catalog"]
    assert (await api.call("DELETE", f"/_sim/faults/{listed['faults'][0]['id']}")).status == 204
    assert (await api.call("GET", "/v2/pods")).status == 200


@pytest.mark.parametrize(
    "document",
    [
        {"name": "nope"},
        {"name": "slow", "params": {"speed": 1}},
        {"name": "slow", "target": {"moon": 1}},
        {"nam": "slow"},
    ],
)
async def test_a_fault_that_nobody_knows_is_refused_with_its_reason(api, document):
    answer = await api.call("POST", "/_sim/faults", document)
    assert answer.status == 422
    assert answer.body["error"]


async def test_a_fault_works_after_its_delay_for_its_duration(api, sim):
    sim.faults.add("html-502", after=10, duration=20, count=-1)
    statuses = []
    for _ in range(4):
        statuses.append((await api.call("GET", "/v2/pods")).status)
        await sim.advance(10)
    assert statuses == [200, 502, 502, 200]


def test_an_unknown_name_lists_the_known_ones(sim):
    with pytest.raises(UnknownFaultError, match="wedge-later"):
        sim.faults.add("wedgie")
