"""`kubectl gpupod` against the real API server: what it reads, what it sets, and what it leaves alone."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from clusterkit import Admin
from gpupod_operator.cli.plugin import main
from gpupod_operator.cli.plugin.failure import Failed
from gpupod_operator.cli.plugin.kube import Kube
from gpupod_operator.cli.plugin.session import private_key
from gpupod_operator.render.rows import pod_object
from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.runpod import RunPodSimulator, VirtualClock

pytestmark = pytest.mark.usefixtures("crds")

SPEC = {"placement": {"candidates": [{"gpuType": "H100"}]}, "container": {"image": "image:1"}}
READY: dict[str, Any] = {
    "observedGeneration": 1,
    "phase": "Ready",
    "message": "pod p1 is ready at 10.0.0.1:4022, billing $2.69/h",
    "attempt": {"id": "a1", "podId": "p1", "cause": "Spec", "intent": "None"},
    "pod": {
        "id": "p1",
        "name": "x-n1",
        "gpuType": "NVIDIA H100 80GB HBM3",
        "gpuSummary": "1x H100",
        "count": 1,
        "costPerHour": "2.69",
        "providerStatus": "RUNNING",
    },
    "endpoint": {"address": "10.0.0.1:4022", "host": "10.0.0.1", "port": 4022, "podId": "p1"},
    "cost": {"perHour": "2.69", "since": "2026-11-30T10:00:00Z", "accruedAtSince": "1.00"},
}


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Plugin = Callable[..., Awaitable[Ran]]


@pytest.fixture
def plugin(
    control_plane: ControlPlane,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Plugin:
    """Runs a command as a person does who has the administrator's kubeconfig and this test's namespace."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    async def run(*arguments: str) -> Ran:
        flags = ("--kubeconfig", str(control_plane.access.kubeconfig), "-n", namespace)
        before, dashes, after = (list(arguments), [], []) if "--" not in arguments else _split(arguments)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            # in a thread of its own: it is a blocking program that runs a loop of its own
            await asyncio.to_thread(main, [*before, *flags, *dashes, *after])
        captured = capsys.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return run


def _split(arguments: tuple[str, ...]) -> tuple[list[str], list[str], list[str]]:
    at = arguments.index("--")
    return list(arguments[:at]), ["--"], list(arguments[at + 1 :])


async def make(admin: Admin, namespace: str, name: str, status: dict[str, Any] | None = None, **spec: Any) -> None:
    body = {"apiVersion": "gpupod.dev/v1alpha1", "kind": "GpuPod", "metadata": {"name": name}}
    await admin.create(body | {"spec": SPEC | spec}, namespace=namespace)
    if status is not None:
        await admin.patch("GpuPod", name, {"status": status}, namespace=namespace, subresource="status")


def condition(kind: str, status: str, reason: str, message: str = "m") -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-30T10:00:00Z",
    }


async def annotations(admin: Admin, namespace: str, name: str) -> dict[str, str]:
    return (await admin.get("GpuPod", name, namespace=namespace))["metadata"].get("annotations") or {}


async def test_why_says_what_blocks_what_unblocks_it_and_what_it_costs(admin, namespace, plugin):
    held = READY | {
        "phase": "Wedged",
        "message": "Migrate of pod p1 is held: cell c7 is not on the Hub",
        "conditions": [
            condition("Stalled", "True", "CellsUnverified"),
            condition("Wedged", "True", "PortLost"),
            condition("ArtifactsSafe", "False", "CellsUnverified", "cell c7 is not on the Hub"),
            condition("Registered", "True", "Registered"),
        ],
        "episode": {"kind": "PortLost", "firstSeen": "2026-11-30T11:00:00Z", "observations": 9},
    }
    await make(admin, namespace, "x", held)
    ran = await plugin("why", "x")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("x: Wedged\n")
    assert "Migrate of pod p1 is held: cell c7 is not on the Hub" in ran.out
    assert "blocked by  CellsUnverified: Wait for the uploads, or set gpupod.dev/abandon-data" in ran.out
    assert "$2.69/h now" in ran.out and "PortLost, first seen" in ran.out
    assert "Registered=" not in ran.out


async def test_why_says_that_a_change_is_not_acted_on_yet(admin, namespace, plugin):
    await make(admin, namespace, "x", READY)
    await admin.patch("GpuPod", "x", {"spec": {"keepRunning": True}}, namespace=namespace)
    assert "your last change, 2, is not acted on yet" in (await plugin("why", "x")).out


async def test_what_does_not_exist_is_one_line_and_exit_code_1(plugin):
    ran = await plugin("why", "nobody")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1 and '"nobody" not found' in ran.err


async def test_approval_and_migration_name_the_recorded_pod_and_are_printed(admin, namespace, plugin):
    await make(admin, namespace, "x", READY)
    approved, migrated = await plugin("approve", "x"), await plugin("migrate", "x")
    assert approved.out.startswith("gpupod.dev/approve-terminate: p1\n")
    assert migrated.out.startswith("gpupod.dev/migrate: p1\n")
    assert await annotations(admin, namespace, "x") == {
        "gpupod.dev/approve-terminate": "p1",
        "gpupod.dev/migrate": "p1",
    }


async def test_without_a_pod_there_is_nothing_to_approve(admin, namespace, plugin):
    await make(admin, namespace, "x", {"phase": "WaitingForCapacity"})
    ran = await plugin("approve", "x")
    assert ran.code == 1 and "has no pod now (phase WaitingForCapacity)" in ran.err
    assert await annotations(admin, namespace, "x") == {}


async def test_an_approval_is_not_set_when_the_pod_changed_after_it_was_printed(
    admin, namespace, plugin, control_plane, monkeypatch
):
    await make(admin, namespace, "x", READY)
    from gpupod_operator.cli.plugin import asking

    really = asking._about

    def migrated_meanwhile(found: dict[str, Any]) -> list[str]:
        async def other() -> None:
            async with Admin.by_kubeconfig(
                control_plane.access.url, control_plane.access.ca, control_plane.access.kubeconfig
            ) as second:
                change = {"status": {"attempt": {"podId": "p2"}}}
                await second.patch("GpuPod", "x", change, namespace=namespace, subresource="status")

        asyncio.run(other())
        return really(found)

    monkeypatch.setattr(asking, "_about", migrated_meanwhile)
    ran = await plugin("approve", "x")
    assert ran.code == 1 and "has another pod now; nothing was set" in ran.err
    assert await annotations(admin, namespace, "x") == {}


async def test_adopt_makes_a_gpupod_that_names_exactly_this_pod(admin, namespace, plugin):
    assert (await plugin("adopt", "y", "pod7", "--paused")).code == 0
    spec = (await admin.get("GpuPod", "y", namespace=namespace))["spec"]
    assert (spec["adopt"], spec["paused"]) == ({"podId": "pod7"}, True)


async def test_adopt_is_refused_while_another_pod_is_recorded_and_names_the_rule(admin, namespace, plugin):
    await make(admin, namespace, "x", READY)
    ran = await plugin("adopt", "x", "pod7")
    assert ran.code == 1 and "adopt" in ran.err
    assert "adopt" not in (await admin.get("GpuPod", "x", namespace=namespace))["spec"]


async def test_generated_cells_are_accepted_and_listed_by_their_pod(admin, namespace, plugin):
    grid = ("--sweep", "lr", "--pod", "x", "--param", "lr=1e-4,3e-4", "--param", "seed=0,1", "--repo", "o/r")
    paths = ("--done-file", "/workspace/out/{cell}/DONE", "--artifact", "evals=/workspace/out/{cell}/evals:*.json@2")
    made = await plugin("cells", "generate", *grid, *paths)
    cells = list(yaml.safe_load_all(made.out))
    assert [cell["metadata"]["name"] for cell in cells] == [
        "lr-lr-1e-4-seed-0",
        "lr-lr-1e-4-seed-1",
        "lr-lr-3e-4-seed-0",
        "lr-lr-3e-4-seed-1",
    ]
    for cell in cells:
        await admin.apply(cell, namespace=namespace)
    status = {
        "phase": "Verified",
        "manifest": {"files": 3, "bytes": 2048},
        "commit": {"oid": "0123456789abcdef"},
        "verification": {"state": "Verified"},
    }
    await admin.patch("SweepCell", "lr-lr-1e-4-seed-0", {"status": status}, namespace=namespace, subresource="status")
    listed = (await plugin("cells", "x")).out.splitlines()
    assert len(listed) == 5
    assert listed[1].split() == ["lr-lr-1e-4-seed-0", "lr", "Verified", "3", "2.0", "KiB", "01234567", "Verified"]
    assert (await plugin("cells", "other")).code == 1


async def test_receipts_show_what_permitted_the_last_end(admin, namespace, plugin):
    receipt = {
        "podId": "p0",
        "at": "2026-11-30T11:00:00Z",
        "reason": "Migrate",
        "digest": "ab" * 32,
        "verified": 7,
        "rerun": ["cell-08"],
        "policy": "approval: WhenVerified",
    }
    past = {"attempt": "a0", "podId": "p0", "until": "2026-11-30T11:01:00Z", "reason": "Migrated", "cost": "3.21"}
    await make(admin, namespace, "x", READY | {"receipt": receipt, "history": [past]})
    out = (await plugin("receipts", "x")).out
    assert "Migrate of pod p0" in out and "7 cells on the Hub" in out and "cell-08" in out
    assert "$3.21" in out and "by policy alone" in out


async def test_sync_writes_a_person_s_files_and_check_finds_every_difference(admin, namespace, plugin, tmp_path):
    await make(admin, namespace, "x", READY)
    mcp, conf, ssh = tmp_path / "mcp.json", tmp_path / "pods.conf", tmp_path / "ssh" / "config"
    mcp.write_text('{"mcpServers": {"ssh": {"command": "srv", "env": {"SSH_SERVER_HOME_HOST": "h", "A": "1"}}}}')
    mcp.chmod(0o640)
    files = ("--ssh-config", str(ssh), "--known-hosts-file", str(tmp_path / "known"))
    files += ("--pods-conf", str(conf), "--mcp", str(mcp))
    before = await plugin("conf", "check", *files)
    assert before.code == 1 and "DIFFERS" in before.out and not conf.exists()
    assert (await plugin("conf", "sync", *files)).code == 0
    assert "\nHost x\n    HostName 10.0.0.1\n    Port 4022\n" in ssh.read_text()
    assert (ssh.stat().st_mode & 0o777, mcp.stat().st_mode & 0o777) == (0o600, 0o640)
    assert conf.read_text().splitlines()[-1].split() == ["x", "10.0.0.1", "4022", "1", "H100", "x"]
    env = yaml.safe_load(mcp.read_text())["mcpServers"]["ssh"]["env"]
    assert (env["SSH_SERVER_X_HOST"], env["SSH_SERVER_HOME_HOST"], env["A"]) == ("10.0.0.1", "h", "1")
    assert (await plugin("conf", "check", *files)).code == 0
    moved = {"status": {"endpoint": {"host": "10.0.0.2"}}}
    await admin.patch("GpuPod", "x", moved, namespace=namespace, subresource="status")
    assert (await plugin("conf", "check", *files)).code == 1


async def test_show_prints_the_file_and_says_who_has_no_row(admin, namespace, plugin):
    await make(admin, namespace, "x", READY)
    await make(admin, namespace, "waiting")
    ran = await plugin("conf", "show")
    assert ran.out.splitlines()[-1].split()[:3] == ["x", "10.0.0.1", "4022"]
    assert "no row for waiting: NoPod" in ran.err


async def test_update_pins_a_row_and_clear_override_follows_the_pod_again(admin, namespace, plugin):
    await make(admin, namespace, "x", READY)
    pinned = await plugin("conf", "update", "x", "--host", "10.9.9.9", "--this-pod")
    assert pinned.code == 0 and "x 10.9.9.9 4022" in pinned.out
    assert "warning:" in pinned.err and "may take this change back" in pinned.err
    spec = (await admin.get("GpuPod", "x", namespace=namespace))["spec"]
    assert spec["podsConf"]["endpointOverride"] == {"host": "10.9.9.9", "podId": "p1"}
    followed = await plugin("conf", "clear-override", "x")
    assert "x 10.0.0.1 4022" in followed.out
    assert "endpointOverride" not in (await admin.get("GpuPod", "x", namespace=namespace))["spec"]["podsConf"]


async def test_update_without_a_gpupod_makes_one_that_only_has_a_row(admin, namespace, plugin):
    ran = await plugin("conf", "update", "lent", "--host", "10.1.1.1", "--port", "22")
    assert ran.code == 0 and "lent 10.1.1.1 22" in ran.out
    spec = (await admin.get("GpuPod", "lent", namespace=namespace))["spec"]
    assert spec["paused"] is True and not spec.get("adopt") and not spec["placement"].get("candidates")


async def test_refresh_asks_the_operator_to_look_again(admin, namespace, plugin):
    await make(admin, namespace, "x", READY)
    ran = await plugin("conf", "refresh", "x")
    assert ran.code == 0
    assert (await annotations(admin, namespace, "x"))["gpupod.dev/reconcile-at"] in ran.out


async def test_refresh_watches_the_one_live_pod_of_a_name_and_no_other(admin, namespace, plugin, tmp_path):
    async with vendor(tmp_path) as (sim, flags):
        assert "no live pod is named old-pod" in (await plugin("conf", "refresh", "old-pod", *flags)).err
        pod_id = await rent(sim, "old-pod")
        early = await plugin("conf", "refresh", "old-pod", *flags)
        assert early.code == 1 and "not RUNNING" in early.err
        await sim.advance(60)
        assert (await plugin("conf", "refresh", "old-pod", *flags)).code == 0
        spec = (await admin.get("GpuPod", "old-pod", namespace=namespace))["spec"]
        assert (spec["paused"], spec["adopt"]) == (True, {"podId": pod_id})
        await rent(sim, "twin")
        await rent(sim, "twin")
        assert "2 live pods are named twin" in (await plugin("conf", "refresh", "twin", *flags)).err


async def test_audit_puts_every_pod_into_a_bucket_and_changes_nothing(admin, namespace, plugin, tmp_path):
    async with vendor(tmp_path) as (sim, flags):
        instance = (await admin.get("Namespace", "kube-system"))["metadata"]["uid"]
        mine = await rent(sim, "mine", owner=f"{instance}/{namespace}/x/irrelevant")
        lost = await rent(sim, "lost", owner=f"{instance}/{namespace}/deleted/00000000-0000-0000-0000-000000000000")
        theirs = await rent(sim, "theirs")
        await sim.advance(60)
        status = READY | {"attempt": {**READY["attempt"], "podId": mine}}
        status["conditions"] = [condition("Ready", "True", "Ready")]
        status["workload"] = {"state": "Running"}
        await make(admin, namespace, "x", status)
        young = await plugin("audit", *flags)
        buckets = {line.split()[1]: line.split()[0] for line in young.out.split("NOTE")[1].splitlines() if line.strip()}
        assert (buckets[mine], buckets[theirs]) == ("active", "foreign")
        # the simulated clock stands at its own epoch, which is long ago for the plugin
        assert buckets[lost] == "orphan"
        assert young.code == 2 and "leaking: 1 pods" in young.err
        assert {pod.id for pod in sim.cloud.pods.values() if pod.alive} == {mine, lost, theirs}


async def test_audit_of_gpupods_alone_finds_a_pod_that_is_unreachable_and_bills(admin, namespace, plugin):
    quiet = await plugin("audit")
    assert quiet.code == 0
    fault = {"kind": "PortLost", "firstSeen": "2026-11-30T11:00:00Z", "observations": 9}
    await make(admin, namespace, "x", READY | {"phase": "Wedged", "episode": fault})
    ran = await plugin("audit")
    assert ran.code == 2
    assert "unreachable" in ran.out and "PortLost since 2026-11-30T11:00:00Z" in ran.out
    assert "leaking: 1 pods, $2.69/h" in ran.err


async def test_ssh_gets_the_key_from_its_secret_and_leaves_no_trace(admin, namespace, plugin, control_plane, tmp_path):
    await make(admin, namespace, "x", READY, ssh={"keySecretRef": {"name": "k"}})
    assert "Secret" in (await plugin("ssh", "x")).err
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "k"}, "stringData": {"ssh-privatekey": "KEY"}}
    await admin.create(secret, namespace=namespace)
    script = tmp_path / "bin" / "ssh"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        'echo "$2" > "$OUT/config-path"; cp "$2" "$OUT/config"\n'
        "key=$(sed -n 's/ *IdentityFile //p' \"$2\")\n"
        'cp "$key" "$OUT/key"; stat -c %a "$key" > "$OUT/mode"; echo "$3|$4|$5" > "$OUT/words"; exit 7\n'
    )
    script.chmod(0o755)
    env = os.environ | {"PATH": f"{script.parent}:{os.environ['PATH']}", "OUT": str(tmp_path), "PYTHONPATH": "operator"}
    arguments = (
        "ssh",
        "--kubeconfig",
        str(control_plane.access.kubeconfig),
        "x",
        "-n",
        namespace,
        "--",
        "ls",
        "-l",
        "a b",
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gpupod_operator.cli.plugin", *arguments, env=env
    )
    assert await process.wait() == 7
    assert (tmp_path / "key").read_text() == "KEY\n"
    assert (tmp_path / "mode").read_text().strip() == "600"
    assert (tmp_path / "words").read_text().strip() == "x|ls -l 'a b'|"
    assert "    HostName 10.0.0.1\n    Port 4022\n" in (tmp_path / "config").read_text()
    assert not Path((tmp_path / "config-path").read_text().strip()).parent.exists()


async def test_ssh_finds_the_key_pair_that_the_operator_made_for_the_namespace(admin, namespace, control_plane):
    await make(admin, namespace, "x", READY)
    pod = pod_object(await admin.get("GpuPod", "x", namespace=namespace))
    kube = Kube(str(control_plane.access.kubeconfig), namespace=namespace)
    with pytest.raises(Failed, match=f"Secret {namespace}/ssh-{namespace}: .*--identity FILE"):
        await asyncio.to_thread(private_key, kube, pod, namespace)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"ssh-{namespace}"}}
    await admin.create(secret | {"stringData": {"ssh-privatekey": "PAIR"}}, namespace=namespace)
    assert await asyncio.to_thread(private_key, kube, pod, namespace) == b"PAIR"


async def test_ssh_without_an_endpoint_says_why(admin, namespace, plugin):
    await make(admin, namespace, "x", {"phase": "WaitingForCapacity"})
    ran = await plugin("ssh", "x")
    assert ran.code == 1 and "no pod is recorded" in ran.err


class vendor:  # noqa: N801 - used like a function
    """A simulated RunPod on a clock that stands still, and the flags that point the plugin to it."""

    def __init__(self, home: Path) -> None:
        self._sim = RunPodSimulator(clock=VirtualClock())
        self._home = home

    async def __aenter__(self) -> tuple[RunPodSimulator, tuple[str, ...]]:
        sim = await self._sim.__aenter__()
        key = self._home / "runpod.key"
        key.write_text(sim.key("main"))
        return sim, ("--runpod-key-file", str(key), "--runpod-api", sim.url)

    async def __aexit__(self, *error: object) -> None:
        await self._sim.__aexit__(*error)


async def rent(sim: RunPodSimulator, name: str, owner: str | None = None) -> str:
    body: dict[str, Any] = {
        "name": name,
        "image": "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404",
        "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 1},
        "ports": ["22/tcp"],
        "disk": 20,
        "env": {"GPUPOD_OWNER": owner, "GPUPOD_NONCE": "n1"} if owner is not None else {},
    }
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {sim.key('main')}"}) as session,
        session.post(f"{sim.url}/v2/pods", json=body) as answer,
    ):
        assert answer.status == 201, await answer.text()
        return str((await answer.json())["id"])
