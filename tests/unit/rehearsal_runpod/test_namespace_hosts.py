"""Rented pods for real: namespaces, an SSH server, and a cut that leaves the processes alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import aiohttp
import asyncssh
import pytest

from gpupod_operator.shell.remote import run_script
from gpupod_rehearsal.hosts import Endpoint, HostError, NamespaceHost, NamespacesUnavailable, PodLaunch, VolumeMount
from gpupod_rehearsal.hosts.container import find_sshd
from gpupod_rehearsal.runpod import Blueprint, RunPodSimulator, Timings

OPERATOR = str(Path(__file__).resolve().parents[3] / "operator")
BEAT = (
    "setsid bash -c 'while :; do echo . >> /workspace/beat; sleep 0.02; done' >/dev/null 2>&1 </dev/null & "
    "until [ -s /workspace/beat ]; do sleep 0.01; done; echo ok"
)


class Client:
    """A user's SSH key and what can be done with it."""

    def __init__(self) -> None:
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.public = self.key.export_public_key().decode().strip()

    def connect(self, endpoint: Endpoint, **options):
        options = {"known_hosts": None, "connect_timeout": 5, **options}
        return asyncssh.connect(
            endpoint.ip, endpoint.port, username="root", client_keys=[self.key], config=[], **options
        )

    async def run(self, endpoint: Endpoint, command: str) -> str:
        async with self.connect(endpoint) as connection:
            result = await connection.run(command, check=True)
            return str(result.stdout)


@pytest.fixture(params=["openssh", "asyncssh"])
async def host(request, tmp_path):
    if request.param == "openssh" and (os.geteuid() != 0 or find_sshd() is None):
        pytest.skip("OpenSSH's server needs root and openssh-server")
    try:
        async with NamespaceHost(tmp_path, ssh=request.param) as running:
            yield running
    except NamespacesUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def client():
    return Client()


def launch(client, pod="pod1", **env):
    return PodLaunch(pod, {"RUNPOD_POD_ID": pod, **env}, VolumeMount("/workspace"), (client.public,))


async def grows(path: Path) -> bool:
    """Whether a file gets longer within a second."""
    size = length(path)
    for _ in range(100):
        await asyncio.sleep(0.01)
        if length(path) > size:
            return True
    return False


def length(path: Path) -> int:
    return path.stat().st_size


def command_lines() -> bytes:
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += path.read_bytes()
    return found


def way_to_this_python() -> set[str]:
    """Folders that a pod has because this Python is bound into it at its own path (a checkout below /tmp)."""
    return {part for prefix in (sys.prefix, sys.base_prefix) for part in Path(prefix).parts}


async def test_a_session_sees_the_pods_own_files_processes_and_variables(host, client):
    endpoint = await host.start(launch(client, TRICKY="it's $HOME\n2"))
    assert endpoint.ip.startswith("127.")
    assert await client.run(endpoint, 'printf %s "$TRICKY"') == "it's $HOME\n2"
    assert await client.run(endpoint, "printf %s $RUNPOD_POD_ID-$(hostname)") == "pod1-pod1"
    assert await client.run(endpoint, "printf %s $RUNPOD_TCP_PORT_22") == str(endpoint.port)
    assert set((await client.run(endpoint, "ls /tmp /home")).split()) <= {"/home:", "/tmp:", *way_to_this_python()}
    assert "init.py" in await client.run(endpoint, "cat /proc/1/cmdline | tr '\\0' ' '")
    assert int(await client.run(endpoint, "ls -d /proc/[0-9]* | wc -l")) < 15
    assert await client.run(endpoint, "touch /usr/x 2>/dev/null || printf readonly") == "readonly"
    assert await client.run(endpoint, "dd if=/dev/zero of=/dev/shm/x bs=1k count=1 2>/dev/null && printf shm") == "shm"


async def test_the_pods_python_is_this_one_with_its_packages(host, client):
    endpoint = await host.start(launch(client))
    code = "import sys, huggingface_hub; print(sys.prefix, huggingface_hub.__version__)"
    import huggingface_hub

    assert (await client.run(endpoint, f"python3 -c '{code}'")).split() == [sys.prefix, huggingface_hub.__version__]


async def test_exit_status_stderr_stdin_and_sftp_work(host, client, tmp_path):
    endpoint = await host.start(launch(client))
    (tmp_path / "up").write_text("payload")
    async with client.connect(endpoint) as connection:
        result = await connection.run("cat; echo oops >&2; exit 3", input="fed", stderr=asyncssh.PIPE)
        assert (result.exit_status, result.stdout, result.stderr) == (3, "fed", "oops\n")
        async with connection.start_sftp_client() as sftp:
            await sftp.put(str(tmp_path / "up"), "/workspace/up")
    assert (host.directory("pod1") / "volume" / "up").read_text() == "payload"


async def test_a_command_that_ends_without_reading_its_input_keeps_its_exit_status(host, client):
    endpoint = await host.start(launch(client))
    ended = []
    for _ in range(8):
        async with client.connect(endpoint) as connection:
            ended.append((await run_script(connection, "exit 7", payload=b"x" * 300_000, seconds=20)).exit_status)
    assert ended == [7] * 8


async def test_a_terminal_session_has_a_terminal(host, client):
    endpoint = await host.start(launch(client))
    async with client.connect(endpoint) as connection:
        assert "/dev/pts/" in (await connection.run("tty", term_type="xterm")).stdout


async def test_only_the_given_key_may_in(host, client):
    endpoint = await host.start(launch(client))
    with pytest.raises(asyncssh.PermissionDenied):
        await Client().run(endpoint, "true")


async def test_a_cut_pod_is_unreachable_while_its_processes_run_on_and_comes_back(host, client):
    endpoint = await host.start(launch(client))
    key = host.host_key("pod1")
    assert (await client.run(endpoint, BEAT)).strip() == "ok"
    async with client.connect(endpoint) as open_session:
        await host.set_reachable("pod1", False)
        await open_session.wait_closed()
    with pytest.raises((TimeoutError, asyncssh.Error)):
        await client.connect(endpoint, connect_timeout=0.5)
    assert await grows(host.directory("pod1") / "volume" / "beat")
    await host.set_reachable("pod1", False, mode="refuse")
    with pytest.raises(ConnectionRefusedError):
        await client.connect(endpoint)
    await host.set_reachable("pod1", True)
    assert await client.run(endpoint, "printf back") == "back"
    assert host.host_key("pod1") == key
    assert await grows(host.directory("pod1") / "volume" / "beat")


async def test_a_stop_ends_processes_and_wipes_the_disk_but_not_the_volume(host, client):
    pod = PodLaunch("pod1", {}, VolumeMount("/data"), (client.public,))
    endpoint = await host.start(pod)
    key = host.host_key("pod1")
    await client.run(endpoint, "echo kept > /data/file; echo gone > /workspace/file")
    await client.run(endpoint, BEAT.replace("/workspace", "/data"))
    beat = host.directory("pod1") / "volume" / "beat"
    assert await grows(beat)
    again = await host.restart(pod)
    size = length(beat)
    assert (await client.run(again, "ls /data /workspace")).split() == ["/data:", "beat", "file", "/workspace:"]
    assert length(beat) == size
    assert again.ip == endpoint.ip
    assert again.port != endpoint.port
    assert host.host_key("pod1") != key
    with pytest.raises(OSError):
        await client.connect(endpoint)


async def test_terminating_ends_the_pod_with_its_volume_but_not_a_network_volume(host, client, tmp_path):
    pod = PodLaunch("pod1", {}, VolumeMount("/workspace", "vol1"), (client.public,))
    endpoint = await host.start(pod)
    await client.run(endpoint, "echo kept > /workspace/file")
    await host.terminate("pod1")
    assert not host.directory("pod1").exists()
    assert (tmp_path / "volumes" / "vol1" / "file").read_text() == "kept\n"
    other = await host.start(PodLaunch("pod2", {}, VolumeMount("/workspace", "vol1"), (client.public,)))
    assert await client.run(other, "cat /workspace/file") == "kept\n"


async def test_pods_do_not_see_each_other(host, client):
    one, two = await host.start(launch(client, "pod1")), await host.start(launch(client, "pod2"))
    assert one.ip != two.ip
    await client.run(one, "echo secret > /workspace/mine; echo secret > /tmp/mine; setsid sleep 600 >/dev/null 2>&1 &")
    seen = (await client.run(two, "ls /workspace /tmp; ps ax | grep -c '[s]leep 600' || true")).split()
    assert "mine" not in seen
    assert set(seen) <= {"/tmp:", "/workspace:", "0", *way_to_this_python()}
    assert seen[-1] == "0"


async def test_no_secret_of_the_pod_stands_on_a_command_line_or_stays_in_a_readable_file(host, client, tmp_path):
    await host.start(launch(client, HF_TOKEN="hf_secret_value"))
    assert b"init.py" in command_lines()
    assert b"hf_secret_value" not in command_lines()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hf_secret" in path.read_bytes()]


async def test_pods_end_when_the_process_that_holds_them_is_killed(tmp_path, client):
    code = f"""
import asyncio, sys
from pathlib import Path
from gpupod_rehearsal.hosts import NamespaceHost, NamespacesUnavailable, PodLaunch
async def main():
    host = NamespaceHost(Path({str(tmp_path)!r}))
    try:
        end = await host.start(PodLaunch("pod1", {{}}, None, ({client.public!r},)))
    except NamespacesUnavailable as reason:
        print("skip", reason, flush=True)
        return
    print(end.ip, end.port, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": OPERATOR}
    )
    try:
        first, second = (await holder.stdout.readline()).decode().split(maxsplit=1)
        if first == "skip":
            pytest.skip(second)
        endpoint = Endpoint(first, int(second))
        assert (await client.run(endpoint, BEAT)).strip() == "ok"
    finally:
        holder.send_signal(signal.SIGKILL)
        await holder.wait()
    beat = tmp_path / "pods" / "pod1" / "disk" / "beat"
    while await grows(beat):
        continue
    with pytest.raises(OSError):
        await client.connect(endpoint)


async def test_where_namespaces_are_refused_the_message_is_one_line_with_a_remedy(tmp_path, monkeypatch):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("unshare", "setpriv", "setsid"):
        (tools / name).write_text("#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2\nexit 1\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    with pytest.raises(NamespacesUnavailable) as refusal:
        await NamespaceHost(tmp_path / "w").start(PodLaunch("pod1", {}))
    assert "Operation not permitted" in str(refusal.value)
    assert "container image" in str(refusal.value)
    assert "\n" not in str(refusal.value)


async def test_a_server_that_cannot_start_is_a_host_error_and_leaves_nothing_running(host, client, monkeypatch):
    monkeypatch.setattr(host, "_free_port", lambda address: 1)
    monkeypatch.setattr(host, "_new_address", lambda: "192.0.2.1")
    with pytest.raises(HostError, match="no SSH server on"):
        await host.start(launch(client))
    with pytest.raises(KeyError):
        host.host_key("pod1")


async def test_a_pod_rented_over_the_api_is_reached_at_its_endpoint_until_it_is_wedged(tmp_path, client):
    plan = Blueprint(timings=Timings.fast())
    try:
        async with (
            NamespaceHost(tmp_path) as host,
            RunPodSimulator(hosts=host, blueprint=plan) as sim,
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {sim.key()}"}) as session,
        ):
            body = {"name": "p", "image": "i", "gpu": {"id": "NVIDIA H200", "count": 1}, "ports": ["22/tcp"]}
            body |= {"env": {"PUBLIC_KEY": client.public}, "mounts": {"persistent": {"size": 10, "path": "/workspace"}}}
            async with session.post(f"{sim.url}/v2/pods", json=body) as response:
                pod = (await response.json())["id"]
            url = f"{sim.url}/v2/pods/{pod}"
            direct = await _until(session, url, lambda shown: shown["ssh"]["direct"])
            endpoint = Endpoint(direct["host"], direct["port"])
            assert await client.run(endpoint, "printf %s $RUNPOD_POD_ID") == pod
            async with session.post(f"{sim.url}/_sim/wedge?pod={pod}&mode=refuse"):
                pass
            await sim.driver.drain()
            with pytest.raises(ConnectionRefusedError):
                await client.connect(endpoint)
            async with session.delete(url):
                pass
            await sim.driver.drain()
            assert not host.directory(pod).exists()
    except NamespacesUnavailable as reason:
        pytest.skip(str(reason))


async def _until(session, url, ready):
    """Poll the API, as its clients must, until it shows what is waited for."""
    async with asyncio.timeout(30):
        while True:
            async with session.get(url) as response:
                found = ready(await response.json())
            if found:
                return found
            await asyncio.sleep(0.02)
