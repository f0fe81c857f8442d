"""The text of the rendered files, held by golden files and by the programs that read them."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpupod_operator.render.configmaps import config_maps
from gpupod_operator.render.known_hosts import known_hosts
from gpupod_operator.render.mcp_env import mcp_env
from gpupod_operator.render.pods_conf import pods_conf
from gpupod_operator.render.registration import registration
from gpupod_operator.render.rows import PodObject, Row
from gpupod_operator.render.ssh_config import SshPaths, ssh_config

Make = Callable[..., PodObject]

GOLDEN = Path(__file__).parent / "golden"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHXqVZsLkQmJr2uvY1c0pZ4m6Jx0v8tqk3n5a7w9y1zB"
FORMAT = re.compile(r"^[A-Za-z0-9._-]+(?:\s+\S+){5}$")


@pytest.fixture
def rows(make: Make) -> tuple[Row, ...]:
    """A pinned pod, one not visited yet with a long raw GPU id, and an override without a pod."""
    pinned = make(
        "pod-12",
        conf={"label": "thomas-pod-12"},
        endpoint={"host": "203.0.113.5", "port": 40022, "hostKey": f"{KEY} root@host"},
        pod={"gpuType": "NVIDIA H100 80GB HBM3", "count": 8, "providerStatus": "RUNNING"},
        pod_id="abc123",
    )
    unvisited = make(
        "a.b-eval_2",
        endpoint={"host": "198.51.100.77", "port": 1022},
        pod={"gpuType": "NVIDIA A100 80GB PCIe", "count": 1, "providerStatus": "RUNNING"},
        pod_id="def456",
    )
    pinned_by_hand = make("z", conf={"endpointOverride": {"host": "gpu.example.org", "port": 22}}, pod_id=None)
    return registration([pinned, unvisited, pinned_by_hand]).rows


@pytest.mark.parametrize("name", ["pods.conf", "ssh_config", "known_hosts", "mcp.env.json"])
def test_rendered_file_is_the_golden_file(rows: tuple[Row, ...], name: str):
    text = config_maps(rows)["pods-conf"][name]
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text)
    assert text == (GOLDEN / name).read_text()


def test_each_row_has_exactly_six_fields(rows: tuple[Row, ...]):
    lines = [line for line in pods_conf(rows).splitlines() if not line.startswith("#")]
    assert [len(line.split()) for line in lines] == [6, 6, 6]
    assert all(FORMAT.match(line) for line in lines)
    assert all(int(line.split()[2]) > 0 and int(line.split()[3]) > 0 for line in lines)


def test_columns_start_at_one_place_and_lines_end_without_blanks(rows: tuple[Row, ...]):
    lines = [line for line in pods_conf(rows).splitlines() if not line.startswith("#")]
    starts = {tuple(m.start() for m in re.finditer(r"\S+", line)) for line in lines}
    assert len(starts) == 1
    assert all(line == line.rstrip() for line in lines)


def test_file_without_rows_is_the_header_whose_last_line_names_the_format():
    text = pods_conf(())
    assert text.endswith("\n")
    assert text.splitlines()[-1] == "# name host port gpus gpu_type label"
    assert all(line.startswith("#") for line in text.splitlines())


def test_one_row_ends_with_one_newline(rows: tuple[Row, ...]):
    text = pods_conf(rows[:1])
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_new_start_of_a_pod_replaces_its_pinned_key(make: Make):
    other = KEY.replace("AAAAC3", "AAAAC4")
    pods = [
        make("x", endpoint={"host": "203.0.113.5", "port": 1, "hostKey": key, "startedAt": at})
        for key, at in ((KEY, "2026-11-30T12:01:00Z"), (other, "2026-11-30T13:00:00Z"))
    ]
    before, after = (known_hosts(registration([pod]).rows) for pod in pods)
    assert before == f"gpupod-p1 {KEY}\n"
    assert after == f"gpupod-p1 {other}\n"


def test_pod_on_another_pods_old_address_is_not_held_to_its_key(make: Make):
    """RunPod gives one address and port to different pods over time; the pod id is the identity."""
    endpoint = {"host": "203.0.113.5", "port": 40022, "hostKey": KEY}
    for pod_id in ("old", "new"):
        text = known_hosts(registration([make("x", endpoint=endpoint, pod_id=pod_id)]).rows)
        assert text.startswith(f"gpupod-{pod_id} ")
        assert "203.0.113.5" not in text


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client on this machine")
def test_openssh_reads_the_config_and_pins_by_pod_id(rows: tuple[Row, ...], tmp_path: Path):
    hosts = tmp_path / "known hosts"
    hosts.write_text(known_hosts(rows))
    config = tmp_path / "ssh_config"
    config.write_text(ssh_config(rows, SshPaths(identity_file="/keys/id", known_hosts_file=str(hosts))))

    def option(host: str) -> dict[str, str]:
        done = subprocess.run(["ssh", "-G", "-F", config, host], capture_output=True, text=True, check=True)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)

    pinned = option("pod-12")
    assert (pinned["hostname"], pinned["port"], pinned["user"]) == ("203.0.113.5", "40022", "root")
    assert pinned["hostkeyalias"] == "gpupod-abc123"
    assert pinned["stricthostkeychecking"] in {"yes", "true"}
    assert pinned["userknownhostsfile"] == str(hosts)
    assert pinned["identityfile"] == "/keys/id"
    assert option("a.b-eval_2")["stricthostkeychecking"] == "accept-new"
    found = subprocess.run(
        ["ssh-keygen", "-F", "gpupod-abc123", "-f", hosts], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0
    assert KEY in found.stdout


def test_mcp_variables_of_names_that_fold_together_stay_apart(make: Make):
    pods = [make(n, endpoint={"host": f"203.0.113.{i}", "port": 1}) for i, n in enumerate(("a.b", "a-b"), start=1)]
    env = mcp_env(registration(pods).rows)
    assert {env["SSH_SERVER_A_B_HOST"], env["SSH_SERVER_A_B_2_HOST"]} == {"203.0.113.1", "203.0.113.2"}
    assert all(re.fullmatch(r"[A-Z0-9_]+", key) for key in env)


def test_many_pods_are_sharded_before_one_mebibyte(make: Make):
    pods = [
        make(
            f"pod-{n:05d}",
            endpoint={"host": "203.0.113.5", "port": 40022, "hostKey": KEY},
            pod={"gpuType": "NVIDIA A100 80GB PCIe", "count": 8},
        )
        for n in range(2500)
    ]
    rows = registration(pods).rows
    maps = config_maps(rows)
    assert list(maps) == ["pods-conf", *(f"pods-conf-{n}" for n in range(1, len(maps)))]
    assert len(maps) > 1
    for data in maps.values():
        assert sum(len(k) + len(v.encode()) for k, v in data.items()) < 1024 * 1024
        names = [line.split()[0] for line in data["pods.conf"].splitlines() if not line.startswith("#")]
        assert re.findall(r"^Host (.*)$", data["ssh_config"], re.MULTILINE) == names
        assert len(data["known_hosts"].splitlines()) == len(names)
        assert len(json.loads(data["mcp.env.json"])) == 7 * len(names)
    lines = [
        line.split()[0] for data in maps.values() for line in data["pods.conf"].splitlines() if not line.startswith("#")
    ]
    assert lines == [row.name for row in rows]


def test_without_rows_there_is_no_config_map():
    assert config_maps(()) == {}
