"""The pod resource: what is accepted, what is refused and how a pod lives."""

from __future__ import annotations

import pytest

from gpupod_rehearsal.runpod import Blueprint, Host

NO_CAPACITY = (
    "There are no longer any instances available with the requested specifications. Please refresh and try again."
)
FULL_HOST = "There are not enough free GPUs on the host machine to start this pod."


async def test_a_pod_goes_from_provisioning_over_a_pull_to_a_published_port(api, sim):
    pod = await api.create()
    assert (pod["status"], pod["ssh"], pod["runtime"], pod["startedAt"]) == (
        "PROVISIONING",
        {"proxy": None, "direct": None},
        None,
        None,
    )
    await sim.advance(3)
    placed = await api.pod(pod["id"])
    host = sim.cloud.hosts[sim.cloud.pods[pod["id"]].host]
    assert placed["status"] == "STARTING"
    assert placed["ssh"]["proxy"]["username"] == f"{pod['id']}-{host.fingerprint}"
    assert placed["dataCenterId"] == host.data_center
    await sim.advance(20)
    unmapped = await api.pod(pod["id"])
    assert (unmapped["status"], unmapped["runtime"]["ports"], unmapped["ssh"]["direct"]) == ("RUNNING", [], None)
    await sim.advance(2)
    ready = await api.pod(pod["id"])
    port = ready["runtime"]["ports"][0]
    assert (port["private"], port["type"]) == (22, "tcp")
    assert ready["ssh"]["direct"]["port"] == port["public"]
    assert "still fetching image" in "".join(line.line for line in sim.cloud.pods[pod["id"]].logs)


async def test_big_steps_and_small_steps_of_the_clock_lead_to_the_same_world(api, sim):
    first = await api.create()
    await sim.advance(100)
    in_one = await api.pod(first["id"])
    second = await api.create(name="second")
    for _ in range(100):
        await sim.advance(1)
    in_many = await api.pod(second["id"])
    assert in_one["runtime"]["uptime"] == in_many["runtime"]["uptime"]


async def test_stop_and_start_keep_the_host_and_change_the_port(api, sim):
    pod = await api.running()
    before, host = await api.pod(pod), sim.cloud.pods[pod].host
    stopped = await api.act(pod, "stop")
    assert (stopped.status, stopped.body["status"], stopped.body["cost"], stopped.body["runtime"]) == (
        200,
        "EXITED",
        0.0,
        None,
    )
    assert stopped.body["actions"] == ["start", "terminate"]
    assert stopped.body["cudaVersion"] == "12.8"
    assert (await api.act(pod, "start")).status == 200
    await sim.advance(60)
    after = await api.pod(pod)
    assert sim.cloud.pods[pod].host == host
    assert after["startedAt"] > before["startedAt"]
    assert after["ssh"]["direct"]["port"] != before["ssh"]["direct"]["port"]


@pytest.mark.parametrize(("action", "prepare"), [("start", None), ("restart", "stop"), ("stop", "stop")])
async def test_an_action_that_the_status_does_not_allow_is_409(api, action, prepare):
    pod = await api.running()
    if prepare is not None:
        await api.act(pod, prepare)
    answer = await api.act(pod, action)
    assert (answer.status, answer.body["title"]) == (409, "Conflict")


async def test_restart_gives_a_new_start_and_a_new_port_on_the_same_pod(api, sim):
    pod = await api.running()
    before = await api.pod(pod)
    assert (await api.act(pod, "restart")).body["status"] == "STARTING"
    await sim.advance(60)
    after = await api.pod(pod)
    assert after["startedAt"] > before["startedAt"]
    assert after["ssh"]["direct"]["port"] != before["ssh"]["direct"]["port"]


async def test_terminate_answers_204_and_the_pod_is_gone_from_get_and_list(api):
    pod = await api.running()
    assert (await api.act(pod, "terminate")).status == 204
    assert (await api.call("GET", f"/v2/pods/{pod}")).status == 404
    assert (await api.call("DELETE", f"/v2/pods/{pod}")).status == 404
    assert await api.listed() == []


async def test_a_locked_pod_cannot_be_stopped(api):
    pod = await api.running()
    assert (await api.call("PATCH", f"/v2/pods/{pod}", {"locked": True})).body["locked"] is True
    assert (await api.act(pod, "stop")).status == 400
    assert (await api.pod(pod))["status"] == "RUNNING"


async def test_a_patch_of_the_container_resets_a_running_pod_and_a_new_name_does_not(api):
    pod = await api.running()
    renamed = await api.call("PATCH", f"/v2/pods/{pod}", {"name": "other"})
    assert (renamed.body["name"], renamed.body["status"]) == ("other", "RUNNING")
    reset = await api.call("PATCH", f"/v2/pods/{pod}", {"ports": ["22/tcp", "8888/http"]})
    assert (reset.body["ports"], reset.body["status"]) == (["22/tcp", "8888/http"], "STARTING")


async def test_unknown_body_properties_are_422_with_the_vendors_words(api, body):
    answer = await api.call("POST", "/v2/pods", {**body(), "bogus": 1})
    assert answer.status == 422
    assert answer.body == {
        "title": "Unprocessable Entity",
        "status": 422,
        "detail": "Request validation failed.",
        "errors": ["$: additional properties 'bogus' not allowed"],
    }
    assert await api.listed() == []


async def test_unknown_query_parameters_are_ignored(api):
    pod = await api.create()
    assert await api.listed("?desiredStatus=EXITED&name=nobody") == [pod["id"]]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"gpu": None}, "exactly one of gpu or cpu"),
        ({"cpu": {"id": "cpu5c", "vcpuCount": 2}}, "exactly one of gpu or cpu"),
        ({"gpu": {"id": "NVIDIA H200"}}, NO_CAPACITY),
        ({"gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 16}}, NO_CAPACITY),
        ({"gpu": {"id": "H100", "count": 1}}, "not found"),
        ({"cloud": "COMMUNITY", "gpu": {"id": "NVIDIA H200", "count": 1}}, NO_CAPACITY),
        ({"cloud": "COMMUNITY", "dataCenterIds": ["US-KS-2"]}, NO_CAPACITY),
        ({"dataCenterIds": ["XX-1"]}, NO_CAPACITY),
        ({"gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 1, "minCudaVersion": "13.9"}}, NO_CAPACITY),
        ({"ports": ["22/udp"]}, "invalid port"),
        ({"ports": [f"{n}/http" for n in range(1, 12)]}, "at most 10"),
        ({"mounts": {"network": [{"volumeId": "nope", "path": "/workspace"}]}}, "network volume not found"),
    ],
)
async def test_a_valid_body_that_breaks_a_rule_or_finds_no_host_is_400(api, body, changes, says):
    answer = await api.call("POST", "/v2/pods", body(**changes))
    assert answer.status == 400
    assert says in answer.body["detail"]
    assert await api.listed() == []


async def test_a_body_over_the_limit_is_413(api, body):
    answer = await api.call("POST", "/v2/pods", body(env={"BIG": "x" * 102_400}))
    assert answer.status == 413


async def test_an_unknown_template_is_404_and_a_known_one_fills_in_what_the_body_leaves_out(api, sim, body):
    assert (await api.call("POST", "/v2/pods", body(templateId="nope"))).status == 404
    template = {"id": "tpl1", "name": "t", "image": "from/template:1", "disk": 33, "env": {"A": "t", "B": "t"}}
    sim.cloud.accounts["acct_main"].templates.append(template)
    pod = await api.create(templateId="tpl1", image=None, disk=None, env={"B": "body"})
    assert (pod["image"], pod["disk"], pod["env"], pod["template"]) == (
        "from/template:1",
        33,
        {"A": "t", "B": "body"},
        None,
    )


async def test_start_ssh_injects_the_registered_keys_and_nothing_without_any(api):
    assert "PUBLIC_KEY" not in (await api.create(startSsh=True))["env"]
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILXGDN me@example.com"
    assert (await api.call("PUT", "/v2/account/ssh-keys", {"keys": [key]})).body == {"keys": [key]}
    assert (await api.create(startSsh=True))["env"]["PUBLIC_KEY"] == key


async def test_a_network_volume_decides_the_data_center(api):
    volume = await api.call("POST", "/v2/network-volumes", {"name": "v", "size": 50, "dataCenter": "US-TX-3"})
    assert volume.status == 201
    gpu = {"id": "NVIDIA H100 NVL", "count": 1}
    mount = {"network": [{"volumeId": volume.body["id"], "path": "/workspace"}]}
    pod = await api.running(gpu=gpu, mounts=mount)
    assert (await api.pod(pod))["dataCenterId"] == "US-TX-3"
    assert (await api.call("DELETE", f"/v2/network-volumes/{volume.body['id']}")).status == 400
    await api.act(pod, "terminate")
    assert (await api.call("DELETE", f"/v2/network-volumes/{volume.body['id']}")).status == 204


async def test_pages_follow_each_other_without_gap_and_overlap(api):
    made = [(await api.create(name=f"pod-{n}", gpu={"id": "NVIDIA L40S", "count": 1}))["id"] for n in range(5)]
    seen, cursor, pages = [], "", 0
    while True:
        page = (await api.call("GET", f"/v2/pods?limit=2{cursor}")).body
        pages += 1
        seen += [pod["id"] for pod in page["pods"]]
        if not page["pagination"]["hasNextPage"]:
            break
        cursor = f"&cursor={page['pagination']['nextCursor']}"
    assert sorted(seen) == sorted(made)
    assert pages == 3
    assert page["pagination"]["nextCursor"] is None


async def test_a_malformed_or_foreign_cursor_and_a_bad_limit_are_422(api):
    for _ in range(2):
        await api.create(gpu={"id": "NVIDIA L40S", "count": 1})
    mine = (await api.call("GET", "/v2/pods?limit=1")).body["pagination"]["nextCursor"]
    assert (await api.of("other").call("GET", f"/v2/pods?cursor={mine}")).status == 422
    for query in ("cursor=garbage!", "limit=0", "limit=1001", "limit=x"):
        assert (await api.call("GET", f"/v2/pods?{query}")).status == 422


async def test_cluster_members_are_hidden_by_default_and_refuse_every_verb(api):
    made = await api.call("POST", "/_sim/foreign", {"name": "member", "cluster": {"id": "c1", "rank": 0}})
    pod = made.body["podId"]
    assert await api.listed() == []
    assert await api.listed("?includeClusterPods=true") == [pod]
    assert (await api.call("DELETE", f"/v2/pods/{pod}")).status == 409
    assert (await api.act(pod, "stop")).status == 409


class TestOneSmallHost:
    @pytest.fixture
    def blueprint(self) -> Blueprint:
        gpu = "NVIDIA H100 80GB HBM3"
        return Blueprint(hosts=[Host("only", "US-KS-2", gpu, gpus=2, reclaim_after=120)])

    async def test_a_full_host_refuses_a_second_pod_with_the_literal_text(self, api, body):
        await api.create(gpu={"id": "NVIDIA H100 80GB HBM3", "count": 2})
        answer = await api.call("POST", "/v2/pods", body())
        assert (answer.status, answer.body["detail"]) == (400, NO_CAPACITY)

    async def test_other_tenants_take_the_gpus_of_a_stopped_pod_and_its_start_is_refused(self, api, sim):
        pod = await api.running(gpu={"id": "NVIDIA H100 80GB HBM3", "count": 2})
        await api.act(pod, "stop")
        await sim.advance(121)
        answer = await api.act(pod, "start")
        assert (answer.status, answer.body["detail"]) == (400, FULL_HOST)
        assert (await api.pod(pod))["status"] == "EXITED"

    async def test_the_catalog_says_none_when_nothing_is_free(self, api):
        path = "/v2/catalog/gpus/NVIDIA%20H100%2080GB%20HBM3?include=AVAILABILITY&product=POD"
        assert (await api.call("GET", path)).body["availability"] == "LOW"
        await api.create(gpu={"id": "NVIDIA H100 80GB HBM3", "count": 2})
        gpu = (await api.call("GET", path)).body
        assert gpu["availability"] == "NONE"
        assert "dataCenters" not in gpu
        assert gpu["cudaVersions"] == [{"version": "12.8", "available": False}]
