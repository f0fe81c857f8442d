"""The control plane that all other cluster tests stand on."""

import asyncio
import json
import os
import select
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from clusterkit import Admin, Refused
from clusterkit.fixtures import apply_crd
from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.controlplane.modules import KUBERNETES

WIDGET_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.trial.gpupod.dev"},
    "spec": {
        "group": "trial.gpupod.dev",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}},
                                "x-kubernetes-validations": [
                                    {"rule": "self.size >= oldSelf.size", "message": "widgets only grow"}
                                ],
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture
async def widget(admin: Admin, namespace: str) -> dict[str, Any]:
    await apply_crd(admin, WIDGET_CRD)
    manifest = {"apiVersion": "trial.gpupod.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 2}}
    return await admin.create(manifest, namespace=namespace)


async def test_transition_rule_of_a_crd_is_enforced(admin: Admin, namespace: str, widget: dict[str, Any]):
    with pytest.raises(Refused, match="widgets only grow") as refusal:
        await admin.patch("Widget", "w", {"spec": {"size": 1}}, namespace=namespace)
    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")
    assert (await admin.get("Widget", "w", namespace=namespace))["spec"]["size"] == 2


async def test_status_and_spec_are_written_apart(admin: Admin, namespace: str, widget: dict[str, Any]):
    await admin.patch("Widget", "w", {"spec": {"size": 9}, "status": {"seen": 1}}, namespace=namespace)
    await admin.patch(
        "Widget", "w", {"spec": {"size": 99}, "status": {"seen": 2}}, namespace=namespace, subresource="status"
    )
    found = await admin.get("Widget", "w", namespace=namespace)
    assert (found["spec"], found["status"]) == ({"size": 9}, {"seen": 2})


async def test_stale_write_conflicts(admin: Admin, namespace: str, widget: dict[str, Any]):
    await admin.patch("Widget", "w", {"spec": {"size": 3}}, namespace=namespace)
    with pytest.raises(Refused) as refusal:
        await admin.replace({**widget, "spec": {"size": 4}}, namespace=namespace)
    assert (refusal.value.status, refusal.value.reason) == (409, "Conflict")


async def test_service_account_logs_in_like_a_pod_and_may_do_only_what_its_role_says(
    control_plane: ControlPlane, admin: Admin, namespace: str, tmp_path: Path
):
    await admin.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}, namespace=namespace
    )
    await admin.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
        },
        namespace=namespace,
    )
    await admin.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        },
        namespace=namespace,
    )

    env = control_plane.access.in_cluster_env(tmp_path / "sa", namespace=namespace, service_account="reader")

    folder = Path(env["GPUPOD_SERVICEACCOUNT_DIR"])
    assert (folder / "namespace").read_text() == namespace
    assert (folder / "token").stat().st_mode & 0o077 == 0
    # Certificates are checked strictly, for the address that the environment names.
    strict = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    url = f"https://{env['KUBERNETES_SERVICE_HOST']}:{env['KUBERNETES_SERVICE_PORT']}"
    token = (folder / "token").read_text()

    def status_of(resource: str) -> int:
        request = urllib.request.Request(
            f"{url}/api/v1/namespaces/{namespace}/{resource}", headers={"Authorization": f"Bearer {token}"}
        )
        try:
            with urllib.request.urlopen(request, context=strict, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refusal:
            return refusal.code

    assert status_of("configmaps") == 200
    assert status_of("secrets") == 403


async def test_objects_and_waiters_survive_restarts_of_api_server_and_etcd(
    control_plane: ControlPlane, admin: Admin, namespace: str, widget: dict[str, Any]
):
    control_plane.restart_apiserver()
    control_plane.restart_etcd()
    found = await admin.watch_until("Widget", "w", lambda w: w is not None, namespace=namespace)
    assert found is not None
    assert found["metadata"]["uid"] == widget["metadata"]["uid"]


async def test_watch_from_before_a_restart_is_gone(
    control_plane: ControlPlane, admin: Admin, namespace: str, widget: dict[str, Any]
):
    old = widget["metadata"]["resourceVersion"]
    # The new watch cache starts at what etcd holds now, which is past `old`.
    await admin.patch("Widget", "w", {"spec": {"size": 5}}, namespace=namespace)
    control_plane.restart_apiserver()
    await admin.watch_until("Widget", "w", lambda w: w is not None, namespace=namespace)
    with pytest.raises(Refused) as refusal:
        async for _ in admin.watch("Widget", namespace=namespace, resourceVersion=str(int(old) - 1)):
            pass
    assert (refusal.value.status, refusal.value.reason) == (410, "Expired")


def test_nobody_answers_while_the_api_server_is_down(control_plane: ControlPlane):
    with control_plane.apiserver_down(), pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(control_plane.access.url, timeout=5)
    context = ssl.create_default_context(cafile=str(control_plane.access.ca))
    with urllib.request.urlopen(f"{control_plane.access.url}/readyz", context=context, timeout=5) as answer:
        assert answer.status == 200


async def test_deleted_namespace_takes_everything_in_it(controllers: None, admin: Admin, namespace: str):
    await admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, namespace=namespace)
    await admin.delete("Namespace", namespace)
    await admin.wait_gone("ConfigMap", "c", namespace=namespace)
    await admin.wait_gone("Namespace", namespace)


async def test_child_goes_with_its_owner(controllers: None, admin: Admin, namespace: str):
    owner = await admin.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}}, namespace=namespace
    )
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await admin.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "ownerReferences": [reference]}},
        namespace=namespace,
    )
    await admin.delete("ConfigMap", "owner", namespace=namespace)
    await admin.wait_gone("ConfigMap", "child", namespace=namespace)


def test_kubectl_of_the_same_version_speaks_to_it(control_plane: ControlPlane):
    kubectl = control_plane.program("kubectl")
    answer = subprocess.run(
        [kubectl, f"--kubeconfig={control_plane.access.kubeconfig}", "version", "--output=json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    versions = json.loads(answer.stdout)
    assert versions["clientVersion"]["gitVersion"] == KUBERNETES.version_of("k8s.io/kubernetes")
    assert versions["serverVersion"]["gitVersion"].startswith("v1.")


def test_attached_cluster_is_used_and_left_alone(control_plane: ControlPlane, tmp_path: Path):
    attached = ControlPlane.attach(control_plane.access.kubeconfig)
    assert attached.access.url == control_plane.access.url
    assert attached.access.ca.read_bytes() == control_plane.access.ca.read_bytes()
    with pytest.raises(LookupError, match="not ours"):
        attached.apiserver.stop()


async def test_cancelled_start_leaves_no_server(control_plane: ControlPlane, tmp_path: Path):
    loop = asyncio.get_running_loop()
    starting = asyncio.Event()

    def say(sentence: str) -> None:
        if sentence.startswith("Starting"):
            loop.call_soon_threadsafe(starting.set)

    async def rehearse() -> None:
        async with ControlPlane.start(tmp_path, progress=say):
            raise AssertionError("cancelled before it was ready")

    task = asyncio.create_task(rehearse())
    await starting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _commands_that_mention(str(tmp_path)) == []


async def test_async_plane_ends_with_its_block(control_plane: ControlPlane, tmp_path: Path):
    async with ControlPlane.start(tmp_path, progress=lambda _: None) as plane:
        pids = [plane.etcd.pid, plane.apiserver.pid]
        assert None not in pids
        assert len(_commands_that_mention(str(tmp_path))) == 2
    assert _commands_that_mention(str(tmp_path)) == []


def test_servers_die_with_the_process_that_started_them(control_plane: ControlPlane, tmp_path: Path):
    # Whatever our own plane uses is built by now.
    script = (
        "import pathlib, sys\n"
        "from gpupod_rehearsal.controlplane import ControlPlane\n"
        "with ControlPlane.start(pathlib.Path(sys.argv[1]), progress=lambda _: None) as plane:\n"
        "    print(plane.etcd.pid, plane.apiserver.pid, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "plane")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert owner.stdout is not None
    pids = [int(pid) for pid in owner.stdout.readline().split()]
    assert len(pids) == 2
    # Opened while they live: readable once they have ended, whoever reaps them.
    handles = [os.pidfd_open(pid) for pid in pids]
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    for handle in handles:
        readable, _, _ = select.select([handle], [], [], 20)
        os.close(handle)
        assert readable, "a server outlived the process that had started it"
    owner.stdin.close()  # type: ignore[union-attr]
    owner.stdout.close()


def _commands_that_mention(text: str) -> list[str]:
    found = []
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = cmdline.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if text in command:
            found.append(command)
    return found
