"""`gpupod-operator` says a mistake in one line and exits 2."""

import os
import subprocess
import sys

import pytest
import yaml


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KUBE", "GPUPOD_"))}
    return subprocess.run(
        [sys.executable, "-m", "gpupod_operator", *arguments],
        env=clean | {"GPUPOD_SERVICEACCOUNT_DIR": "/nonexistent"} | (env or {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--bad"), "No such option: --bad"),
        (("run", "--observe-every", "2 days"), "not a duration like 15s"),
        (("run", "--log-format", "xml"), "--log-format"),
        (("run", "--watch-namespace", "team-*"), "--watch-namespace"),
        (("nonsense",), "No such command 'nonsense'"),
        (("run",), "set KUBECONFIG or run inside the cluster"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, words, tmp_path):
    done = run(*arguments, env={"HOME": str(tmp_path)})
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("gpupod-operator: ")


def test_an_unreachable_cluster_is_named(tmp_path):
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "c", "user": {"token": "t"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            }
        )
    )
    ports = ("--health-host", "127.0.0.1", "--health-port", "0", "--metrics-port", "-1")
    done = run("run", *ports, env={"KUBECONFIG": str(kubeconfig)})
    assert done.returncode == 2
    assert "the Kubernetes API cannot be reached" in done.stderr.splitlines()[-1]


def test_the_crds_it_ships_are_printed():
    done = run("crds")
    kinds = [d["spec"]["names"]["kind"] for d in yaml.safe_load_all(done.stdout) if d]
    assert (done.returncode, sorted(kinds)) == (0, ["GpuPod", "SweepCell"])
