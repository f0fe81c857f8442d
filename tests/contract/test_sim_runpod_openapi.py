"""The simulated RunPod against the vendor's own description of its API, where that file is at hand."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpupod_rehearsal.runpod import Profile, RunPodSimulator, VirtualClock, contract
from gpupod_rehearsal.runpod.schema import Record, violations

_ROOT = Path(__file__).resolve().parents[2]
_NAME = "runpod-openapi-v2.json"


def _description() -> dict[str, Any] | None:
    given_path = os.environ.get("GPUPOD_VENDOR_OPENAPI")
    places = (
        [Path(given_path)] if given_path else [_ROOT.parent / "shared/vendor" / _NAME, _ROOT.parent / "vendor" / _NAME]
    )
    for place in places:
        if place.is_file():
            found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
            return found
    return None


DESCRIPTION = _description()
pytestmark = pytest.mark.skipif(
    DESCRIPTION is None, reason="the vendor's OpenAPI file is not at hand; GPUPOD_VENDOR_OPENAPI can name it"
)


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = {"$ref": f"#/components/schemas/{name}", "components": (DESCRIPTION or {})["components"]}
    return jsonschema.Draft202012Validator(schema)


def response_errors(method: str, path: str, status: int, content_type: str, body: Any) -> list[str]:
    """What the vendor's description has against an answer; the path must be one of its own."""
    described = DESCRIPTION or {}
    template = next(
        name
        for name in sorted(described["paths"], key=lambda n: n.count("{"))
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", name), path)
    )
    responses = described["paths"][template][method.lower()]["responses"]
    response = responses.get(str(status), responses["default"])
    if "$ref" in response:
        response = described["components"]["responses"][response["$ref"].rpartition("/")[2]]
    if "content" not in response:
        return [] if body is None else ["a body where none is described"]
    if content_type not in response["content"]:
        return [f"{content_type} is not described for {status}"]
    schema = {**response["content"][content_type]["schema"], "components": described["components"]}
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(body)]


POD = {
    "name": "p",
    "image": "i",
    "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 1},
    "ports": ["22/tcp", "8888/http"],
    "env": {"A": "b"},
    "mounts": {"persistent": {"size": 20, "path": "/workspace"}},
}


class Caller:
    """Calls the simulator and collects what the description has against its answers."""

    def __init__(self, sim: RunPodSimulator, session: aiohttp.ClientSession) -> None:
        self.sim, self.session = sim, session
        self.seen: set[tuple[str, str, int]] = set()
        self.errors: list[str] = []

    async def __call__(self, method: str, path: str, body: Any = None, key: str = "main") -> Any:
        headers = {"Authorization": f"Bearer {self.sim.key(key)}"}
        async with self.session.request(method, self.sim.url + path, json=body, headers=headers) as response:
            text = await response.text()
            parsed = json.loads(text) if text else None
            bare = path.partition("?")[0]
            self.seen.add((method, bare, response.status))
            for error in response_errors(method, bare, response.status, response.content_type, parsed):
                self.errors.append(f"{method} {path} {response.status}: {error}")
            if response.status != 401:
                assert "RateLimit" in response.headers
                assert "RateLimit-Policy" in response.headers
            return parsed


@pytest.mark.parametrize("profile", list(Profile))
async def test_every_answer_of_a_pods_whole_life_fits_the_description(profile):
    async with RunPodSimulator(clock=VirtualClock(), profile=profile) as sim, aiohttp.ClientSession() as session:
        call = Caller(sim, session)
        pod = (await call("POST", "/v2/pods", POD))["id"]
        for _ in range(4):
            await call("GET", f"/v2/pods/{pod}")
            await call("GET", "/v2/pods")
            await sim.advance(8)
        await call("PATCH", f"/v2/pods/{pod}", {"name": "q", "env": {"A": "c"}})
        for action in ("stop", "stop", "start", "restart"):
            await call("POST", f"/v2/pods/{pod}/action", {"action": action})
            await call("GET", f"/v2/pods/{pod}")
            await sim.advance(60)
        cpu = {"name": "c", "image": "i", "cpu": {"id": "cpu5c", "vcpuCount": 4}}
        await call("POST", "/v2/pods", cpu)
        await sim.advance(60)
        await call("GET", "/v2/pods")
        sim.faults.add("private-mapping")
        await call("GET", "/v2/pods")
        sim.faults.add("delete-lingers")
        await call("DELETE", f"/v2/pods/{pod}")
        await call("GET", f"/v2/pods/{pod}")
        await sim.advance(7200)
        await call("GET", "/v2/billing/pods?bucketSize=hour&lastN=5")
        await call("GET", f"/v2/billing/pods?podId={pod}&startTime=2026-11-30T00:00:00Z&endTime=2026-12-01T00:00:00Z")
        assert call.errors == []


@pytest.mark.parametrize("profile", list(Profile))
async def test_every_refusal_fits_the_description(profile):
    async with RunPodSimulator(clock=VirtualClock(), profile=profile) as sim, aiohttp.ClientSession() as session:
        call = Caller(sim, session)
        await call("GET", "/v2/pods/none")
        await call("DELETE", "/v2/pods/none")
        await call("POST", "/v2/pods/none/action", {"action": "stop"})
        await call("POST", "/v2/pods/none/action", {"action": "fly"})
        await call("POST", "/v2/pods", {**POD, "bogus": 1})
        await call("POST", "/v2/pods", {**POD, "cpu": {"id": "cpu5c", "vcpuCount": 4}})
        await call("POST", "/v2/pods", POD, key="reader")
        await call("POST", "/v2/pods", {**POD, "templateId": "none"})
        sim.faults.add("rate-limited")
        await call("GET", "/v2/pods")
        pod = (await call("POST", "/v2/pods", POD))["id"]
        await call("POST", f"/v2/pods/{pod}/action", {"action": "start"})
        statuses = {status for _, _, status in call.seen}
        assert {400, 403, 404, 409, 422, 429} <= statuses
        assert call.errors == []


async def test_the_catalog_volumes_and_small_lists_fit_the_description():
    async with RunPodSimulator(clock=VirtualClock()) as sim, aiohttp.ClientSession() as session:
        call = Caller(sim, session)
        for query in ("", "?include=AVAILABILITY&product=POD", "?include=AVAILABILITY", "?count=2"):
            await call("GET", f"/v2/catalog/gpus{query}")
        await call(
            "GET", "/v2/catalog/gpus?include=AVAILABILITY&product=POD&countryCodes=US,CA&minCudaVersion=12&count=2"
        )
        await call("GET", "/v2/catalog/gpus?include=AVAILABILITY&product=POD&countryCodes=usa")
        for path in ("gpus/NVIDIA%20H200", "gpus/none", "cpus", "cpus/cpu5c", "cpus/none", "datacenters", "templates"):
            await call("GET", f"/v2/catalog/{path}")
        await call("GET", "/v2/catalog/datacenters?include=GPU_AVAILABILITY&regions=EUROPE&globalNetwork=true")
        await call("GET", "/v2/catalog/datacenters/US-TX-3")
        volume = await call("POST", "/v2/network-volumes", {"name": "v", "size": 10, "dataCenter": "US-TX-3"})
        await call("POST", "/v2/network-volumes", {"name": "v", "size": 5, "dataCenter": "US-TX-3"})
        for method, body in (
            ("GET", None),
            ("PATCH", {"size": 20}),
            ("PATCH", {"size": 11}),
            ("PATCH", {}),
            ("DELETE", None),
        ):
            await call(method, f"/v2/network-volumes/{volume['id']}", body)
        for path in ("network-volumes", "templates", "registries", "account/ssh-keys"):
            await call("GET", f"/v2/{path}")
        await call("PUT", "/v2/account/ssh-keys", {"keys": ["nonsense"]})
        assert call.errors == []


async def test_each_pod_route_and_method_of_the_description_is_served():
    async with RunPodSimulator(clock=VirtualClock()) as sim, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {sim.key()}"}
        served = ("/v2/pods", "/v2/network-volumes", "/v2/catalog", "/v2/account", "/v2/billing/pods")
        for path, operations in (DESCRIPTION or {})["paths"].items():
            if not path.startswith(served) or path.endswith("/logs"):
                continue
            for method in set(operations) & {"get", "put", "post", "patch", "delete"}:
                url = sim.url + path.replace("{id}", "none")
                async with session.request(method.upper(), url, json={}, headers=headers) as response:
                    detail = (await response.json(content_type=None) or {}).get("detail", "")
                    assert response.status != 405, (method, path)
                    assert response.status != 404 or "{id}" in path, (method, path, detail)


async def test_the_log_stream_sends_events_as_the_description_shows_them():
    async with RunPodSimulator(clock=VirtualClock()) as sim, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {sim.key()}"}
        async with session.post(f"{sim.url}/v2/pods", json=POD, headers=headers) as response:
            pod = (await response.json())["id"]
        await sim.advance(60)
        url = f"{sim.url}/v2/pods/{pod}/logs?source=system&tail=2"
        async with session.get(url, headers=headers) as stream:
            assert stream.headers["Content-Type"] == "text/event-stream"
            assert stream.headers["Cache-Control"] == "no-cache"
            assert stream.headers["X-Accel-Buffering"] == "no"
            first = [(await stream.content.readline()).decode().strip() for _ in range(6)]
            event, data = first[0], json.loads(first[1].removeprefix("data: "))
            assert re.fullmatch(r"id: \d{4}-\d\d-\d\dT[\d:.]+Z/\d{12}", event)
            assert set(data) == {"ts", "source", "line"}
            assert json.loads(first[4].removeprefix("data: "))["line"] == "start container"
            async with session.post(f"{sim.url}/v2/pods/{pod}/action", json={"action": "stop"}, headers=headers):
                pass
            await sim.catch_up()
            followed = [(await stream.content.readline()).decode().strip() for _ in range(2)]
            assert json.loads(followed[1].removeprefix("data: "))["line"] == "stop container"
        resumed = {**headers, "Last-Event-ID": event.removeprefix("id: ")}
        async with session.get(f"{sim.url}/v2/pods/{pod}/logs?source=system", headers=resumed) as stream:
            assert (await stream.content.readline()).decode().strip() == first[3]


# Bodies near the contract: known names with plausible and broken values, and now and then a strange name.
_TEXTS = st.sampled_from(["", "x", "12.8", "12", "22/tcp", "SECURE", "secure"])
_SCALARS = st.one_of(_TEXTS, st.none(), st.booleans(), st.integers(-1, 20), st.sampled_from([1.0, 1.5]))
_MOUNT = st.fixed_dictionaries({}, optional=dict.fromkeys(("size", "path", "volumeId", "strange"), _SCALARS))
_VALUES = st.one_of(
    _SCALARS,
    st.lists(_SCALARS, max_size=3),
    st.dictionaries(_TEXTS, _SCALARS, max_size=2),
    st.fixed_dictionaries(
        {"id": _TEXTS},
        optional={
            n: st.one_of(_SCALARS, st.lists(_TEXTS, max_size=2))
            for n in ("count", "vcpuCount", "allowedCudaVersions", "minCudaVersion", "strange")
        },
    ),
    st.fixed_dictionaries(
        {}, optional={"persistent": _MOUNT, "network": st.lists(_MOUNT, max_size=2), "strange": _SCALARS}
    ),
)


def _bodies(schema: Record, good: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Parts of a good body, some of it replaced."""
    names = [*schema.fields, "strange", "minRamPerGpu", "entrypoint"]
    base = st.fixed_dictionaries({}, optional={name: st.just(value) for name, value in good.items()})
    changes = st.dictionaries(st.sampled_from(names), _VALUES, max_size=2)
    return st.builds(lambda one, two: {**one, **two}, base, changes)


@pytest.mark.parametrize(
    ("name", "ours", "good"),
    [
        ("CreatePodRequest", contract.create_pod(Profile.AUGUST), POD),
        ("UpdatePodRequest", contract.update_pod(Profile.AUGUST), {"name": "q", "ports": ["22/tcp"]}),
        ("PodActionRequest", contract.POD_ACTION, {"action": "stop"}),
        ("UpdateSshKeysRequest", contract.SSH_KEYS, {"keys": ["ssh-ed25519 AAAA me"]}),
        ("CreateNetworkVolumeRequest", contract.CREATE_VOLUME, {"name": "v", "size": 10, "dataCenter": "US-TX-3"}),
        ("UpdateNetworkVolumeRequest", contract.UPDATE_VOLUME, {"size": 20}),
    ],
)
def test_in_profile_august_a_body_is_refused_exactly_where_the_vendors_schema_refuses_it(name, ours, good):
    theirs = validator(name)
    verdicts = set()

    @settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_bodies(ours, good))
    def check(body: dict[str, Any]) -> None:
        found = violations(ours, body)
        verdicts.add(bool(found))
        assert bool(found) == (not theirs.is_valid(body)), found

    check()
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    ("field", "value"),
    [("entrypoint", ["sh"]), ("cmd", ["-c"]), ("gpu", {"id": "NVIDIA H200", "count": 1, "minRamPerGpu": 8})],
)
async def test_what_came_after_august_is_422_there_and_accepted_in_november(field, value):
    for profile, status in ((Profile.AUGUST, 422), (Profile.NOVEMBER, 201)):
        async with RunPodSimulator(clock=VirtualClock(), profile=profile) as sim, aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {sim.key()}"}
            async with session.post(f"{sim.url}/v2/pods", json={**POD, field: value}, headers=headers) as response:
                assert response.status == status, await response.text()


async def test_august_knows_no_pagination_no_account_and_no_balance():
    async with (
        RunPodSimulator(clock=VirtualClock(), profile=Profile.AUGUST) as sim,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {sim.key()}"}) as session,
    ):
        async with session.get(f"{sim.url}/v2/pods?limit=1&cursor=zzz") as response:
            assert await response.json() == {"pods": []}
        for path in ("account", "account/limits", "billing/balance"):
            async with session.get(f"{sim.url}/v2/{path}") as response:
                assert response.status == 404
