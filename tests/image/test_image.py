"""The container image: what is in it, what is not, and that it works under the Deployment's restrictions."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from gpupod_rehearsal.demo.stage import SYSTEM
from imagekit.engine import Engine, find
from worldkit.fixtures import Theatre, is_true

pytestmark = pytest.mark.image

ROOT = Path(__file__).parents[2]
MEGABYTE = 1_000_000
# Measured 205 MB, of which the official client of Kubernetes is 126.
LARGEST_OPERATOR = 240 * MEGABYTE
WHAT_IS_INSIDE = """
import json, os, pathlib, shutil, sys
from importlib import metadata, util
places = [pathlib.Path(p) for p in sys.path if p.endswith("site-packages")]
unwanted = "pip setuptools pytest gpupod_rehearsal huggingface_hub".split()
programs = "cc gcc g++ c++ clang ld make cmake cargo rustc go".split()
print(json.dumps({
    "uid": os.getuid(),
    "installed": {d.metadata["Name"]: d.version for d in metadata.distributions()},
    "importable": [m for m in unwanted if util.find_spec(m)],
    "compilers": [p for p in programs if shutil.which(p)],
    "tests": [str(f) for p in places for f in p.glob("*/tests") if f.parent.name.startswith("gpupod")],
    "agent": util.find_spec("gpupod_cell") is not None,
    "bytes": sum(f.lstat().st_size for f in pathlib.Path("/opt/gpupod").rglob("*") if f.is_file()),
    "writable": [p for p in ("/", "/opt/gpupod", "/etc", "/var", "/usr") if os.access(p, os.W_OK)],
}))
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """An engine with the image of this checkout built."""
    found = find()
    if isinstance(found, str):
        pytest.skip(found)
    found.build(ROOT, tmp_path_factory.mktemp("image"))
    return found


@pytest.fixture(scope="module")
def runs(engine: Engine) -> Engine:
    if engine.runner is None:
        pytest.skip("the image was built; to run it podman is needed (apt-get install podman runc)")
    return engine


@pytest.fixture(scope="module")
def inside(runs: Engine) -> dict[str, Any]:
    python = "--entrypoint=/opt/gpupod/bin/python"
    told = runs.run("-c", WHAT_IS_INSIDE, flags=[python])
    assert told.returncode == 0, told.stderr
    return dict(json.loads(told.stdout))


def test_it_builds_from_the_locks(engine: Engine) -> None:
    assert engine.name in {"docker", "buildah"}


def test_only_the_locked_runtime_dependencies_are_in_it(inside: dict[str, Any]) -> None:
    lock = (ROOT / "requirements.lock").read_text()
    locked = {normal(n): v for n, v in re.findall(r"^([\w.\-]+)==([^\s;\\]+)", lock, re.MULTILINE)}
    found = {normal(name): version for name, version in inside["installed"].items()}
    assert found.pop("gpupod-operator") is not None
    assert set(found) - set(locked) == set()
    assert found == {name: locked[name] for name in found}


def test_its_bill_of_materials_names_what_is_in_it(inside: dict[str, Any], runs: Engine) -> None:
    printing = "import pathlib; print(pathlib.Path('/opt/gpupod/sbom.cdx.json').read_text())"
    bill = json.loads(runs.run("-c", printing, flags=["--entrypoint=/opt/gpupod/bin/python"]).stdout)
    assert bill["bomFormat"] == "CycloneDX"
    named = {normal(part["name"]): part["version"] for part in bill["components"]}
    assert named == {normal(name): version for name, version in inside["installed"].items()}


def test_its_labels_say_what_it_is(runs: Engine) -> None:
    labels = runs.inspect()["Config"]["Labels"]
    prefix = "org.opencontainers.image."
    wanted = {"title", "description", "licenses", "source", "version", "revision"}
    assert wanted <= {name.removeprefix(prefix) for name in labels if name.startswith(prefix)}
    assert labels[f"{prefix}licenses"] == "Apache-2.0"


def test_no_tool_to_build_or_install_with_and_no_rehearsal(inside: dict[str, Any]) -> None:
    assert inside["importable"] == []
    assert inside["compilers"] == []
    assert inside["tests"] == []


def test_the_agent_for_the_pods_is_in_it(inside: dict[str, Any]) -> None:
    assert inside["agent"]


def test_it_is_nobody_and_can_write_nowhere(inside: dict[str, Any], runs: Engine) -> None:
    assert inside["uid"] == 65532
    assert inside["writable"] == []
    assert runs.inspect()["Config"]["User"] == "65532:65532"


def test_its_size_is_known(inside: dict[str, Any], runs: Engine, capfd: pytest.CaptureFixture[str]) -> None:
    with capfd.disabled():
        whole = runs.inspect()["Size"] // MEGABYTE
        print(f"\nimage: {whole} MB with its base, the operator and its Python {inside['bytes'] // MEGABYTE} MB")
    assert inside["bytes"] < LARGEST_OPERATOR


def test_its_commands_answer(runs: Engine) -> None:
    version = runs.run("version")
    assert (version.returncode, version.stderr) == (0, "")
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", version.stdout)
    helps = runs.run("--help")
    assert helps.returncode == 0
    assert [word for word in ("run", "crds", "check", "version") if word not in helps.stdout] == []
    kinds = [d["spec"]["names"]["kind"] for d in yaml.safe_load_all(runs.run("crds").stdout) if d]
    assert sorted(kinds) == ["GpuPod", "SweepCell"]


def test_a_rehearsal_in_it_says_that_there_is_none(runs: Engine) -> None:
    answer = runs.run("rehearse")
    assert answer.returncode == 2
    assert "not installed here" in answer.stderr
    assert "Traceback" not in answer.stderr


async def test_it_rents_under_the_deployments_restrictions(runs: Engine, theatre: Theatre, tmp_path: Path) -> None:
    """Non-root, read-only root, no capability, the ServiceAccount's files where a kubelet puts them."""
    stage = theatre.stage
    assert stage.operator is not None
    await stage.operator.end()
    port = free_port()
    name = f"gpupod-test-{os.getpid()}"
    log = stage.workdir / "operator-image.log"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *container(runs, theatre, tmp_path, name, port), stdout=file, stderr=file
        )
    try:
        await theatre.apply()
        await theatre.until(lambda pod: is_true("Ready")(pod) and is_true("Registered")(pod))
        assert len(await theatre.alive()) == 1
        assert (await theatre.admin.get("Lease", "gpupod-operator", namespace=SYSTEM))["spec"]["holderIdentity"]
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.status == 200
    finally:
        if process.returncode is None:
            await asyncio.to_thread(runs.stop, name)
        code = await asyncio.wait_for(process.wait(), 60)
    assert code == 0
    # Given back on SIGTERM, so that the next one need not wait for it to run out.
    lease = await theatre.admin.get("Lease", "gpupod-operator", namespace=SYSTEM)
    assert not lease["spec"].get("holderIdentity")


def container(engine: Engine, theatre: Theatre, folder: Path, name: str, port: int) -> list[str]:
    """The command line that a kubelet would make of the Deployment, on the host's network and the test's vendors."""
    stage = theatre.stage
    manifest = yaml.safe_load((ROOT / "manifests/base/deployment.yaml").read_text())["spec"]["template"]["spec"]
    (deployed,) = manifest["containers"]
    account = folder / "serviceaccount"
    env = stage.plane.access.in_cluster_env(account, namespace=SYSTEM, service_account=manifest["serviceAccountName"])
    # The folder is where a kubelet puts it, so nothing has to name it.
    del env["GPUPOD_SERVICEACCOUNT_DIR"]
    env |= {e["name"]: e["value"] for e in deployed["env"] if "value" in e} | {
        "POD_NAME": name,
        "POD_NAMESPACE": SYSTEM,
    }
    key = folder / "key"
    key.mkdir()
    (key / "api-key").write_text(stage.runpod_key)
    user, group = (manifest["securityContext"][k] for k in ("runAsUser", "fsGroup"))
    for path in (account, key, *account.iterdir(), *key.iterdir()):
        os.chown(path, user if os.geteuid() == 0 else -1, group if os.geteuid() == 0 else -1)
    mounts = {m["name"]: m["mountPath"] for m in deployed["volumeMounts"]}
    flags = [
        f"--name={name}",
        f"--volume={account}:/var/run/secrets/kubernetes.io/serviceaccount:ro",
        f"--volume={key}:{mounts['runpod-key']}:ro",
        *(f"--env={k}={v}" for k, v in env.items()),
    ]
    vendors = ("--runpod-api", stage.runpod_url, "--hub-endpoint", stage.hub_url, "--observe-every", "0.5s")
    probes = ("--health-host", "127.0.0.1", "--health-port", str(port), "--metrics-port", "-1")
    return engine.command(*deployed["args"], *vendors, *probes, flags=flags)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
