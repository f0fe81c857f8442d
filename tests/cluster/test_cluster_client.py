"""The operator's own Kubernetes client against a real API server, as the shipped ServiceAccount."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kopf
import pytest

from clusterkit import Admin
from clusterkit.admin import Manifest
from clusterkit.fixtures import OperatorIdentity
from gpupod_operator.cluster.client import ClusterClient
from gpupod_operator.cluster.errors import NotLeader
from gpupod_operator.cluster.events import EventPoster
from gpupod_operator.cluster.login import login
from gpupod_operator.cluster.patience import TELL_AFTER
from gpupod_operator.cluster.pods_conf_writer import PodsConfWriter, WriteResult
from gpupod_operator.cluster.transport import ApiTransport
from gpupod_operator.ports import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound, ApiUnavailable
from gpupod_rehearsal.controlplane import ControlPlane

FINALIZER = "gpupod.dev/teardown"
LABELS = {"app.kubernetes.io/managed-by": "gpupod-operator"}

pytestmark = pytest.mark.usefixtures("crds")


class WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


@pytest.fixture
def in_cluster(
    control_plane: ControlPlane, rbac: OperatorIdentity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The environment of a pod that runs as the shipped ServiceAccount; returns its directory."""
    folder = tmp_path / "serviceaccount"
    env = control_plane.access.in_cluster_env(folder, namespace=rbac.namespace, service_account=rbac.service_account)
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    return folder


@pytest.fixture
async def transport(in_cluster: Path) -> AsyncIterator[ApiTransport]:
    async with ApiTransport() as opened:
        yield opened


@pytest.fixture
def client(transport: ApiTransport) -> ClusterClient:
    return client_of(transport)


def client_of(transport: ApiTransport, permit: Callable[[], bool] = lambda: True) -> ClusterClient:
    events = EventPoster(WallClock(), controller="gpupod.dev/gpupod-operator", instance="test-0")
    return ClusterClient(transport, events, permit=permit)


async def create_pod(admin: Admin, namespace: str, name: str = "p", **spec: Any) -> Manifest:
    body = {"apiVersion": "gpupod.dev/v1alpha1", "kind": "GpuPod", "metadata": {"name": name}}
    return await admin.create(body | {"spec": {"paused": True, **spec}}, namespace=namespace)


async def create_cell(admin: Admin, namespace: str, name: str, pod: str) -> Manifest:
    spec = {
        "podRef": {"name": pod},
        "sweep": "s",
        "source": {
            "doneFile": f"/workspace/{name}/DONE",
            "artifacts": [{"name": "a", "path": f"/workspace/{name}/a", "files": ["x"]}],
        },
        "destination": {"repo": "o/r", "path": name, "tokenSecretRef": {"name": "t", "key": "k"}},
    }
    body = {"apiVersion": "gpupod.dev/v1alpha1", "kind": "SweepCell", "metadata": {"name": name}, "spec": spec}
    return await admin.create(body, namespace=namespace)


def at(obj: Manifest) -> dict[str, str]:
    return {"resource_version": obj["metadata"]["resourceVersion"], "uid": obj["metadata"]["uid"]}


# --- status


async def test_status_is_committed_and_a_field_left_out_is_removed(client: ClusterClient, admin: Admin, namespace: str):
    pod = await create_pod(admin, namespace)
    first = await client.apply_status(
        "gpupods", namespace, "p", {"phase": "Pending", "message": "m", "migrations": 1}, **at(pod)
    )
    assert first["status"] == {"phase": "Pending", "message": "m", "migrations": 1}
    second = await client.apply_status("gpupods", namespace, "p", {"phase": "Ready"}, **at(first))
    assert second["status"] == {"phase": "Ready"}
    live = await admin.get("GpuPod", "p", namespace=namespace)
    assert live["status"] == {"phase": "Ready"}
    assert live["spec"] == pod["spec"]


async def test_status_of_an_object_that_changed_is_a_conflict(client: ClusterClient, admin: Admin, namespace: str):
    pod = await create_pod(admin, namespace)
    await admin.patch("GpuPod", "p", {"spec": {"keepRunning": True}}, namespace=namespace)
    with pytest.raises(ApiConflict):
        await client.apply_status("gpupods", namespace, "p", {"phase": "Ready"}, **at(pod))
    assert "status" not in await admin.get("GpuPod", "p", namespace=namespace)


async def test_status_of_another_object_with_the_same_name_is_a_conflict(
    client: ClusterClient, admin: Admin, namespace: str
):
    old = await create_pod(admin, namespace)
    await admin.delete("GpuPod", "p", namespace=namespace)
    await create_pod(admin, namespace)
    with pytest.raises(ApiConflict):
        await client.apply_status("gpupods", namespace, "p", {"phase": "Ready"}, **at(old))
    assert "status" not in await admin.get("GpuPod", "p", namespace=namespace)


async def test_status_of_a_gone_object_is_not_found(client: ClusterClient, admin: Admin, namespace: str):
    pod = await create_pod(admin, namespace)
    await admin.delete("GpuPod", "p", namespace=namespace)
    with pytest.raises(ApiNotFound):
        await client.apply_status("gpupods", namespace, "p", {"phase": "Ready"}, **at(pod))


async def test_status_that_the_schema_refuses_is_invalid_and_says_where(
    client: ClusterClient, admin: Admin, namespace: str
):
    pod = await create_pod(admin, namespace)
    with pytest.raises(ApiInvalid, match="phase"):
        await client.apply_status("gpupods", namespace, "p", {"phase": "Sideways"}, **at(pod))


async def test_equal_status_changes_nothing(client: ClusterClient, admin: Admin, namespace: str):
    pod = await create_pod(admin, namespace)
    first = await client.apply_status("gpupods", namespace, "p", {"phase": "Ready"}, **at(pod))
    second = await client.apply_status("gpupods", namespace, "p", {"phase": "Ready"}, **at(first))
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


# --- finalizers


async def test_finalizer_comes_and_goes_and_others_stay(client: ClusterClient, admin: Admin, namespace: str):
    await create_pod(admin, namespace)
    other = {"metadata": {"finalizers": ["example.org/other"]}}
    pod = await admin.patch("GpuPod", "p", other, namespace=namespace)
    version = pod["metadata"]["resourceVersion"]
    added = await client.set_finalizer("gpupods", namespace, "p", FINALIZER, present=True, resource_version=version)
    assert added["metadata"]["finalizers"] == ["example.org/other", FINALIZER]
    version = added["metadata"]["resourceVersion"]
    again = await client.set_finalizer("gpupods", namespace, "p", FINALIZER, present=True, resource_version=version)
    assert again["metadata"]["resourceVersion"] == version
    gone = await client.set_finalizer("gpupods", namespace, "p", FINALIZER, present=False, resource_version=version)
    assert gone["metadata"]["finalizers"] == ["example.org/other"]


async def test_last_finalizer_of_a_deleted_object_lets_it_go(client: ClusterClient, admin: Admin, namespace: str):
    pod = await create_pod(admin, namespace)
    version = pod["metadata"]["resourceVersion"]
    await client.set_finalizer("gpupods", namespace, "p", FINALIZER, present=True, resource_version=version)
    await admin.delete("GpuPod", "p", namespace=namespace)
    pod = await client.get("gpupods", namespace, "p")
    version = pod["metadata"]["resourceVersion"]
    await client.set_finalizer("gpupods", namespace, "p", FINALIZER, present=False, resource_version=version)
    assert await admin.find("GpuPod", "p", namespace=namespace) is None


async def test_finalizer_of_an_object_that_changed_is_a_conflict(client: ClusterClient, admin: Admin, namespace: str):
    pod = await create_pod(admin, namespace)
    await admin.patch("GpuPod", "p", {"spec": {"keepRunning": True}}, namespace=namespace)
    version = pod["metadata"]["resourceVersion"]
    with pytest.raises(ApiConflict):
        await client.set_finalizer("gpupods", namespace, "p", FINALIZER, present=True, resource_version=version)
    assert "finalizers" not in (await admin.get("GpuPod", "p", namespace=namespace))["metadata"]


# --- lists


async def test_cells_of_one_pod_are_listed_deleted_ones_included(client: ClusterClient, admin: Admin, namespace: str):
    for name, pod in (("a", "p"), ("b", "p"), ("c", "q")):
        await create_cell(admin, namespace, name, pod)
    hold = {"metadata": {"finalizers": ["gpupod.dev/cell"]}}
    await admin.patch("SweepCell", "b", hold, namespace=namespace)
    await admin.delete("SweepCell", "b", namespace=namespace)
    found = await client.list_cells(namespace, "p")
    assert [c["metadata"]["name"] for c in found] == ["a", "b"]
    assert "deletionTimestamp" in found[1]["metadata"]
    assert await client.list_cells(namespace, "nobody") == ()


async def test_list_follows_every_page(
    client: ClusterClient, admin: Admin, namespace: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gpupod_operator.cluster.client.PAGE", 2)
    for n in range(5):
        await create_pod(admin, namespace, f"p{n}")
    found = await client.list_all("gpupods", namespace)
    assert [p["metadata"]["name"] for p in found] == [f"p{n}" for n in range(5)]
    everywhere = await client.list_all("gpupods")
    assert {p["metadata"]["uid"] for p in found} <= {p["metadata"]["uid"] for p in everywhere}


# --- Secrets and ConfigMaps


async def test_secret_of_the_own_namespace_round_trips(client: ClusterClient, rbac: OperatorIdentity):
    secret = {"key": b"\x00binary", "other": b"x"}
    await client.apply_secret(rbac.namespace, "round-trip", secret, labels=LABELS)
    assert await client.read_secret(rbac.namespace, "round-trip") == secret
    await client.apply_secret(rbac.namespace, "round-trip", {"key": b"new"}, labels=LABELS)
    assert await client.read_secret(rbac.namespace, "round-trip") == {"key": b"new"}
    await client.delete_secret(rbac.namespace, "round-trip")
    await client.delete_secret(rbac.namespace, "round-trip")
    with pytest.raises(ApiNotFound):
        await client.read_secret(rbac.namespace, "round-trip")


async def test_secret_of_another_namespace_can_be_read_and_not_written(
    client: ClusterClient, admin: Admin, namespace: str
):
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hf_value"}}
    await admin.create(body, namespace=namespace)
    assert await client.read_secret(namespace, "s") == {"k": b"hf_value"}
    with pytest.raises(ApiForbidden):
        await client.apply_secret(namespace, "s", {"k": b"other"}, labels={})


async def test_refused_secret_is_not_quoted_in_the_error(client: ClusterClient, rbac: OperatorIdentity):
    with pytest.raises(ApiInvalid) as refusal:
        await client.apply_secret(rbac.namespace, "bad", {"hf_looks/like a token": b"x"}, labels={})
    assert "hf_looks" not in str(refusal.value)


async def test_config_map_holds_exactly_what_was_applied(client: ClusterClient, admin: Admin, namespace: str):
    assert await client.read_config(namespace, "c") is None
    await client.apply_config(namespace, "c", {"a": "1", "b": "2"}, labels=LABELS)
    by_hand = {"data": {"a": "edited", "stray": "x"}, "binaryData": {"blob": "AAAA"}}
    await admin.patch("ConfigMap", "c", by_hand, namespace=namespace)
    await client.apply_config(namespace, "c", {"a": "1"}, labels=LABELS)
    live = await admin.get("ConfigMap", "c", namespace=namespace)
    assert live["data"] == {"a": "1"}
    assert "binaryData" not in live
    await client.delete_config(namespace, "c")
    await client.delete_config(namespace, "c")
    assert await client.read_config(namespace, "c") is None


# --- namespaces


@pytest.mark.usefixtures("controllers")
async def test_terminating_namespace_is_told_apart(client: ClusterClient, admin: Admin, namespace: str):
    assert not await client.namespace_terminating(namespace)
    await create_pod(admin, namespace)
    hold = {"metadata": {"finalizers": [FINALIZER]}}
    pod = await admin.patch("GpuPod", "p", hold, namespace=namespace)
    await admin.delete("Namespace", namespace)
    assert await client.namespace_terminating(namespace)
    with pytest.raises(ApiForbidden, match="terminating"):
        await client.apply_config(namespace, "c", {"a": "1"}, labels=LABELS)
    with pytest.raises(ApiForbidden, match="terminating"):
        await client.emit(pod, kind="GpuPod", reason="R", message="m", warning=False, action="Act")
    assert await client.namespace_terminating("no-such-namespace")


async def test_instance_id_is_the_uid_of_kube_system(client: ClusterClient, admin: Admin):
    found = await admin.get("Namespace", "kube-system")
    assert await client.namespace_uid("kube-system") == found["metadata"]["uid"]


# --- events


async def test_event_stands_at_the_object(client: ClusterClient, admin: Admin, namespace: str):
    pod = await create_pod(admin, namespace)
    note = "x" * 2000
    await client.emit(pod, kind="GpuPod", reason="PodCreated", message=note, warning=True, action="Create")
    (event,) = await admin.list("Event", namespace=namespace)
    # kubectl describe finds it by these
    regarding = event.get("regarding") or event["involvedObject"]
    assert (regarding["kind"], regarding["name"], regarding["uid"]) == ("GpuPod", "p", pod["metadata"]["uid"])
    assert (event["type"], event["reason"]) == ("Warning", "PodCreated")
    text = event.get("note") or event["message"]
    assert len(text) == 1024
    assert text.endswith("...")


async def test_repeated_sentence_is_said_once_and_a_flap_is_said(client: ClusterClient, admin: Admin, namespace: str):
    pod = await create_pod(admin, namespace)
    for message in ("up", "up", "down", "up"):
        await client.emit(pod, kind="GpuPod", reason="Probe", message=message, warning=False, action="Probe")
    found = await admin.list("Event", namespace=namespace)
    said = sorted(e.get("note") or e["message"] for e in found)
    assert said == ["down", "up", "up"]


# --- login, leadership, faults


async def test_without_the_lease_nothing_is_written(transport: ApiTransport, admin: Admin, namespace: str):
    pod = await create_pod(admin, namespace)
    standby = client_of(transport, permit=lambda: False)
    writes = (
        lambda: standby.apply_status("gpupods", namespace, "p", {"phase": "Ready"}, **at(pod)),
        lambda: standby.set_finalizer(
            "gpupods", namespace, "p", FINALIZER, present=True, resource_version=at(pod)["resource_version"]
        ),
        lambda: standby.apply_config(namespace, "c", {"a": "1"}, labels=LABELS),
        lambda: standby.delete_config(namespace, "kube-root-ca.crt"),
        lambda: standby.emit(pod, kind="GpuPod", reason="R", message="m", warning=False, action="A"),
    )
    for write in writes:
        with pytest.raises(NotLeader):
            await write()
    assert (await standby.get("gpupods", namespace, "p")) == await admin.get("GpuPod", "p", namespace=namespace)
    assert await admin.find("ConfigMap", "c", namespace=namespace) is None
    assert await admin.list("Event", namespace=namespace) == []


async def test_rotated_token_is_used_without_a_failed_call(
    transport: ApiTransport, in_cluster: Path, client: ClusterClient, namespace: str
):
    await client.list_all("gpupods", namespace)
    token = (in_cluster / "token").read_text()
    (in_cluster / "token").write_text("stale")
    with pytest.raises(ApiUnavailable, match="401"):
        await client.list_all("gpupods", namespace)
    (in_cluster / "token").write_text(token)
    assert await client.list_all("gpupods", namespace) == ()


async def test_refused_credential_is_replaced_by_a_new_login(in_cluster: Path, namespace: str):
    given = iter(["stale"])

    def log_in() -> kopf.ConnectionInfo:
        good = login()
        return kopf.ConnectionInfo(server=good.server, ca_path=good.ca_path, token=next(given, good.token))

    async with ApiTransport(log_in) as transport:
        client = client_of(transport)
        answers = await asyncio.gather(*(client.list_all("gpupods", namespace) for _ in range(5)))
    assert answers == [()] * 5


async def test_unknown_certificate_authority_is_not_trusted(in_cluster: Path, namespace: str):
    def log_in() -> kopf.ConnectionInfo:
        good = login()
        return kopf.ConnectionInfo(server=good.server, token=good.token)

    async with ApiTransport(log_in) as transport:
        with pytest.raises(ApiUnavailable, match="Certificate"):
            await client_of(transport).list_all("gpupods", namespace)


async def test_api_server_that_is_down_is_unavailable_and_comes_back(
    control_plane: ControlPlane, client: ClusterClient, namespace: str
):
    await client.list_all("gpupods", namespace)
    with control_plane.apiserver_down(), pytest.raises(ApiUnavailable):
        await client.list_all("gpupods", namespace)
    assert await client.list_all("gpupods", namespace) == ()


async def test_kubeconfig_logs_in_outside_a_cluster(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespace: str
):
    monkeypatch.setenv("GPUPOD_SERVICEACCOUNT_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("KUBECONFIG", str(control_plane.access.kubeconfig))
    async with ApiTransport() as transport:
        assert await client_of(transport).list_all("gpupods", namespace) == ()


# --- the writer of pods.conf


def writer_of(
    client: ClusterClient, maps: dict[str, dict[str, str]] | None
) -> tuple[PodsConfWriter, list[tuple[str, WriteResult]]]:
    told: list[tuple[str, WriteResult]] = []
    return PodsConfWriter(client, lambda _: maps, on_result=lambda *said: told.append(said)), told


async def flush(writer: PodsConfWriter, namespace: str) -> None:
    writer.mark(namespace)
    await writer.flush()


async def version(admin: Admin, namespace: str, name: str = "pods-conf") -> str:
    return str((await admin.get("ConfigMap", name, namespace=namespace))["metadata"]["resourceVersion"])


async def test_unchanged_rows_write_nothing(client: ClusterClient, admin: Admin, namespace: str):
    writer, told = writer_of(client, {"pods-conf": {"pods.conf": "x\n"}})
    await flush(writer, namespace)
    first = await version(admin, namespace)
    await flush(writer, namespace)
    assert await version(admin, namespace) == first
    assert told == [(namespace, WriteResult(None))]


async def test_hand_edited_map_is_restored(client: ClusterClient, admin: Admin, namespace: str):
    writer, _ = writer_of(client, {"pods-conf": {"pods.conf": "x\n"}})
    await flush(writer, namespace)
    edit = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}, "data": {"pods.conf": "mine", "extra": "y"}}
    await admin.patch("ConfigMap", "pods-conf", edit, namespace=namespace)
    await flush(writer, namespace)
    live = await admin.get("ConfigMap", "pods-conf", namespace=namespace)
    assert live["data"] == {"pods.conf": "x\n"}
    assert live["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "gpupod-operator"


async def test_running_writer_restores_by_itself(client: ClusterClient, admin: Admin, namespace: str):
    maps = {"pods-conf": {"pods.conf": "x\n"}}
    writer = PodsConfWriter(client, lambda _: maps, settle=0.0, recheck_every=0.05)
    stop = asyncio.Event()
    running = asyncio.create_task(writer.run(stop))

    def holds(found: Manifest | None) -> bool:
        return found is not None and found["data"] == {"pods.conf": "x\n"}

    writer.mark(namespace)
    await admin.watch_until("ConfigMap", "pods-conf", holds, namespace=namespace)
    await admin.patch("ConfigMap", "pods-conf", {"data": {"pods.conf": "mine"}}, namespace=namespace)
    await admin.watch_until("ConfigMap", "pods-conf", holds, namespace=namespace)
    await admin.delete("ConfigMap", "pods-conf", namespace=namespace)
    await admin.watch_until("ConfigMap", "pods-conf", holds, namespace=namespace)
    stop.set()
    await running


async def test_map_goes_with_the_last_published_pod(client: ClusterClient, admin: Admin, namespace: str):
    maps = {"pods-conf": {"a": "1"}, "pods-conf-1": {"a": "2"}, "pods-conf-2": {"a": "3"}}
    writer, _ = writer_of(client, maps)
    await flush(writer, namespace)
    del maps["pods-conf-2"], maps["pods-conf-1"]
    await flush(writer, namespace)
    assert await admin.find("ConfigMap", "pods-conf-1", namespace=namespace) is None
    assert await admin.find("ConfigMap", "pods-conf-2", namespace=namespace) is None
    maps.clear()
    await flush(writer, namespace)
    assert await admin.find("ConfigMap", "pods-conf", namespace=namespace) is None


async def test_map_of_somebody_else_is_left_alone_and_reported(client: ClusterClient, admin: Admin, namespace: str):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pods-conf"}, "data": {"k": "theirs"}}
    await admin.create(body, namespace=namespace)
    writer, _ = writer_of(client, {"pods-conf": {"pods.conf": "x\n"}})
    await flush(writer, namespace)
    assert (await admin.get("ConfigMap", "pods-conf", namespace=namespace))["data"] == {"k": "theirs"}
    result = writer.result(namespace)
    assert result is not None
    assert result.problem is not None
    assert "delete it" in result.problem
    nothing, _ = writer_of(client, {})
    await flush(nothing, namespace)
    assert await admin.find("ConfigMap", "pods-conf", namespace=namespace) is not None


async def test_objects_not_seen_yet_leave_the_map_as_it_is(client: ClusterClient, admin: Admin, namespace: str):
    """After a restart: no row is dropped because its object was not read yet."""
    await flush(writer_of(client, {"pods-conf": {"pods.conf": "x\n"}})[0], namespace)
    before = await version(admin, namespace)
    await flush(writer_of(client, None)[0], namespace)
    assert await version(admin, namespace) == before


async def test_failed_write_is_a_result_and_heals(transport: ApiTransport, admin: Admin, namespace: str):
    leader = False
    told: list[str | None] = []
    writer = PodsConfWriter(
        client_of(transport, permit=lambda: leader),
        lambda _: {"pods-conf": {"pods.conf": "x\n"}},
        on_result=lambda _, result: told.append(result.problem),
    )
    for _ in range(TELL_AFTER - 1):
        await flush(writer, namespace)
    assert told == [], "not worth the status of every object yet"
    await flush(writer, namespace)
    leader = True
    await flush(writer, namespace)
    assert told[0] is not None
    assert told[1:] == [None]
    assert (await admin.get("ConfigMap", "pods-conf", namespace=namespace))["data"] == {"pods.conf": "x\n"}


async def test_map_too_large_is_reported_and_not_repeated_for_ever(client: ClusterClient, namespace: str):
    writer, told = writer_of(client, {"pods-conf": {"pods.conf": "x" * (2 * 1024 * 1024)}})
    await flush(writer, namespace)
    await flush(writer, namespace)
    assert len(told) == 1
    assert told[0][1].problem is not None
