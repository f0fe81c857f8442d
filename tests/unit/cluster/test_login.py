"""Where credentials come from, and what is said when there are none. No API server needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import kopf
import pytest
import yaml

from gpupod_operator.cluster.login import credentials_version, login, own_namespace

SECRET = "kubeconfig-token-value"


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a pod nor a kubeconfig."""
    monkeypatch.setenv("GPUPOD_SERVICEACCOUNT_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)


def kubeconfig(path: Path, *, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Path:
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "lab"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://api.example.org:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
def serviceaccount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "sa"
    folder.mkdir()
    (folder / "token").write_text("t1\n")
    (folder / "namespace").write_text("gpupod-system")
    (folder / "ca.crt").write_text("ca")
    monkeypatch.setenv("GPUPOD_SERVICEACCOUNT_DIR", str(folder))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    return folder


def test_pod_logs_in_with_its_serviceaccount_even_beside_a_kubeconfig(
    serviceaccount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "kc", user={"token": SECRET})))
    info = login(logger=None, settings=None)
    assert (info.server, info.token) == ("https://10.0.0.1:6443", "t1")
    assert info.ca_path == str(serviceaccount / "ca.crt")
    assert own_namespace() == info.default_namespace == "gpupod-system"


def test_ipv6_service_address_is_bracketed(serviceaccount: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert login().server == "https://[fd00::1]:6443"


def test_replaced_token_is_noticed_and_read(serviceaccount: Path):
    before = credentials_version()
    assert credentials_version() == before
    (serviceaccount / "new").write_text("t2")
    (serviceaccount / "new").rename(serviceaccount / "token")
    assert credentials_version() != before
    assert login().token == "t2"


def test_token_without_a_service_address_says_what_is_missing(serviceaccount: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(kopf.LoginError, match="KUBERNETES_SERVICE_HOST"):
        login()


def test_without_anything_one_sentence_says_what_to_do():
    with pytest.raises(kopf.LoginError, match="set KUBECONFIG or run inside the cluster"):
        login()


def test_home_kubeconfig_is_found(tmp_path: Path):
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path / ".kube" / "config", user={"token": SECRET})
    assert login().token == SECRET


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "tok").write_text("from-file\n")
    path = kubeconfig(tmp_path / "kc", user={"tokenFile": "tok"}, cluster={"certificate-authority": "ca.pem"})
    monkeypatch.setenv("KUBECONFIG", str(path))
    info = login()
    assert (info.token, info.ca_path) == ("from-file", str(tmp_path / "ca.pem"))
    assert (info.server, info.default_namespace) == ("https://api.example.org:6443", "lab")


def test_first_of_several_kubeconfigs_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = [kubeconfig(tmp_path / name, user={"token": name}) for name in ("one", "two")]
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, paths)))
    assert login().token == "one"


def plugin(tmp_path: Path, body: str) -> dict[str, Any]:
    script = tmp_path / "plugin.py"
    script.write_text(body)
    return {"exec": {"command": sys.executable, "args": [str(script)], "env": [{"name": "WHO", "value": "me"}]}}


def test_exec_plugin_is_run_with_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    body = (
        "import json, os\n"
        "asked = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "token = os.environ['WHO'] + '-' + asked['kind']\n"
        "print(json.dumps({'status': {'token': token, 'expirationTimestamp': '2026-12-01T00:00:00Z'}}))\n"
    )
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "kc", user=plugin(tmp_path, body))))
    assert login().token == "me-ExecCredential"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"import sys; print('{SECRET}', file=sys.stderr); sys.exit(3)", "exited with 3"),
        (f"print('{SECRET}')", "did not print an ExecCredential"),
        (f"print({json.dumps(json.dumps({'status': None, 'x': SECRET}))})", "did not print an ExecCredential"),
    ],
)
def test_failed_exec_plugin_is_named_and_its_output_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
):
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "kc", user=plugin(tmp_path, body))))
    with pytest.raises(kopf.LoginError, match=said) as error:
        login()
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"token: '{SECRET}", "not valid YAML"),
        ("- a list", "not a mapping"),
        ("contexts: []", "no current-context"),
        ("current-context: c", "no entry 'c' in contexts"),
        ("contexts: [just-a-word]\ncurrent-context: c", "contexts"),
    ],
)
def test_broken_kubeconfig_is_a_sentence_without_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
):
    path = tmp_path / "kc"
    path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(kopf.LoginError, match=said) as error:
        login()
    assert SECRET not in str(error.value)


def test_missing_kubeconfig_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    with pytest.raises(kopf.LoginError, match="nowhere"):
        login()
