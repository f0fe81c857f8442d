"""The shipped manifests: what they grant, how the operator runs, and that the demo differs only in durations."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpupod_operator.api.durations import parse_duration
from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.sweepcell import SweepCellSpec

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "manifests"
Manifest = dict[str, Any]

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on this machine")


def documents(path: Path) -> list[Manifest]:
    return [d for d in yaml.safe_load_all(path.read_text()) if d]


def kustomized(overlay: str) -> list[Manifest]:
    done = subprocess.run(["kubectl", "kustomize", MANIFESTS / overlay], capture_output=True, text=True, check=True)
    return [d for d in yaml.safe_load_all(done.stdout) if d]


def only(manifests: list[Manifest], kind: str) -> Manifest:
    (found,) = (m for m in manifests if m["kind"] == kind)
    return found


def grants(role: Manifest) -> set[tuple[str, str, str]]:
    return {
        (g, r, v) for rule in role["rules"] for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]
    }


# --- rights


def test_cluster_wide_rights_are_exactly_these():
    role = only(documents(MANIFESTS / "base" / "rbac.yaml"), "ClusterRole")
    kinds, group = ("gpupods", "sweepcells"), "gpupod.dev"
    assert grants(role) == {
        *((group, kind, verb) for kind in kinds for verb in ("get", "list", "watch", "patch")),
        *((group, f"{kind}/status", "patch") for kind in kinds),
        ("", "secrets", "get"),
        *(("", "configmaps", verb) for verb in ("get", "create", "patch", "delete")),
        ("", "namespaces", "get"),
        ("events.k8s.io", "events", "create"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "get"),
    }


def test_roles_of_one_namespace_give_what_the_cluster_role_gives_less_what_is_the_clusters():
    role = only(documents(MANIFESTS / "overlays" / "namespaced" / "role.yaml"), "Role")
    whole = grants(only(documents(MANIFESTS / "base" / "rbac.yaml"), "ClusterRole"))
    assert grants(role) == whole - {("apiextensions.k8s.io", "customresourcedefinitions", "get")}


def test_no_right_is_a_wildcard_and_secrets_are_never_listed():
    roles = [m for m in documents(MANIFESTS / "base" / "rbac.yaml") if m["kind"] in {"Role", "ClusterRole"}]
    for role in roles:
        assert not any("*" in part for grant in grants(role) for part in grant)
        assert not {("", "secrets", "list"), ("", "secrets", "watch")} & grants(role)
        assert all(rule["resources"] for rule in role["rules"])


def test_secrets_are_written_in_the_operators_own_namespace_only():
    manifests = documents(MANIFESTS / "base" / "rbac.yaml")
    role = only(manifests, "Role")
    assert role["metadata"]["namespace"] == "gpupod-system"
    assert ("", "secrets", "patch") in grants(role)
    lease = [r for r in role["rules"] if r["resources"] == ["leases"]]
    assert [r.get("resourceNames") for r in lease if "update" in r["verbs"]] == [["gpupod-operator"]]


def test_bindings_bind_the_shipped_account():
    manifests = documents(MANIFESTS / "base" / "rbac.yaml")
    account = only(manifests, "ServiceAccount")["metadata"]
    for kind, role in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
        binding = only(manifests, kind)
        assert binding["roleRef"]["name"] == only(manifests, role)["metadata"]["name"]
        assert binding["roleRef"]["kind"] == role
        (subject,) = binding["subjects"]
        assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])


# --- the Deployment


@needs_kubectl
def test_default_overlay_is_complete_and_carries_the_crds():
    kinds = [m["kind"] for m in kustomized("overlays/default")]
    assert sorted(set(kinds)) == [
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "Deployment",
        "Namespace",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    ]
    assert kinds.count("CustomResourceDefinition") == 2


def test_pod_fits_the_restricted_standard_that_its_namespace_enforces():
    space = only(documents(MANIFESTS / "base" / "namespace.yaml"), "Namespace")
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    spec = only(documents(MANIFESTS / "base" / "deployment.yaml"), "Deployment")["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    context = container["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["requests"]
    assert container["resources"]["limits"]["memory"]


def test_probes_and_policies_name_ports_that_exist():
    spec = only(documents(MANIFESTS / "base" / "deployment.yaml"), "Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    assert ports == {"health": 8080, "metrics": 9090}
    probes = {k: container[k]["httpGet"] for k in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {p["port"] for p in probes.values()} == {"health"}
    assert (probes["livenessProbe"]["path"], probes["readinessProbe"]["path"]) == ("/healthz", "/readyz")
    policy = only(documents(MANIFESTS / "base" / "networkpolicy.yaml"), "NetworkPolicy")["spec"]
    assert {p["port"] for rule in policy["ingress"] for p in rule["ports"]} == set(ports)


def test_drain_of_a_node_is_never_blocked_by_the_budget():
    budget = only(documents(MANIFESTS / "base" / "poddisruptionbudget.yaml"), "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1


def test_no_secret_stands_in_the_manifests():
    for path in MANIFESTS.rglob("*.yaml"):
        assert not re.search(r"^kind: Secret$", path.read_text(), re.MULTILINE)
        assert not re.search(r"\b(hf_[A-Za-z0-9]{8,}|rpa_[A-Za-z0-9]{8,})", path.read_text())


# --- samples and the demo


def test_samples_are_sixteen_cells_on_one_pod_whose_paths_do_not_overlap():
    (pod,) = documents(MANIFESTS / "samples" / "gpupod.yaml")
    cells = documents(MANIFESTS / "samples" / "sweepcells.yaml")
    assert pod["metadata"]["name"] == "sweep"
    assert [c["metadata"]["name"] for c in cells] == [f"sweep-{n:02d}" for n in range(16)]
    assert {c["spec"]["podRef"]["name"] for c in cells} == {"sweep"}
    assert len({c["spec"]["destination"]["path"] for c in cells}) == 16
    GpuPodSpec.model_validate(pod["spec"])
    for cell in cells:
        SweepCellSpec.model_validate(cell["spec"])


@needs_kubectl
def test_demo_differs_from_the_samples_in_durations_only():
    before = documents(MANIFESTS / "samples" / "gpupod.yaml") + documents(MANIFESTS / "samples" / "sweepcells.yaml")
    after = {(m["kind"], m["metadata"]["name"]): m for m in kustomized("overlays/demo")}
    assert after.keys() == {(m["kind"], m["metadata"]["name"]) for m in before}
    for sample in before:
        spec = after[sample["kind"], sample["metadata"]["name"]]["spec"]
        timing = {"health", "workload"} if sample["kind"] == "GpuPod" else {"upload"}
        assert {k: v for k, v in spec.items() if k not in timing} == {
            k: v for k, v in sample["spec"].items() if k not in timing
        }
    pod = after["GpuPod", "sweep"]["spec"]
    assert pod["workload"]["command"][:4] == before[0]["spec"]["workload"]["command"][:4]
    assert pod["health"].keys() == {"startTimeout", "sshWait", "wedgeAfter", "confirmations"}
    assert parse_duration(pod["health"]["wedgeAfter"]) * 4 >= parse_duration(pod["health"]["sshWait"]) * 5


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """What the operator prepares on a pod before a launch, with cell 00 on the Hub already."""
    cells = [
        {
            "name": c["metadata"]["name"],
            "state": "Pending",
            "doneFile": _moved(c["spec"]["source"]["doneFile"], tmp_path),
        }
        for c in documents(MANIFESTS / "samples" / "sweepcells.yaml")
    ]
    cells[0]["state"] = "Verified"
    (tmp_path / ".gpupod").mkdir()
    (tmp_path / ".gpupod" / "cells.json").write_text(json.dumps({"format": 1, "cells": cells}))
    return tmp_path


def _moved(path: str, workspace: Path) -> str:
    return path.replace("/workspace", str(workspace))


def run_producer(workspace: Path) -> subprocess.CompletedProcess[str]:
    (pod,) = documents(MANIFESTS / "samples" / "gpupod.yaml")
    command = [_moved(part, workspace) for part in pod["spec"]["workload"]["command"][:4]] + ["0"]
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return subprocess.run(command, capture_output=True, text=True, env={"PATH": path}, check=False)


def matches(directory: Path, artifact: Manifest) -> bool:
    if "files" in artifact:
        return sorted(p.name for p in directory.iterdir()) == sorted(artifact["files"])
    return sum(len(list(directory.glob(g))) for g in artifact["include"]) >= artifact["minFiles"]


def test_producer_makes_what_the_cells_declare_and_skips_verified_ones(workspace: Path):
    done = run_producer(workspace)
    assert done.returncode == 0, done.stderr
    cells = documents(MANIFESTS / "samples" / "sweepcells.yaml")
    assert not Path(_moved(cells[0]["spec"]["source"]["doneFile"], workspace)).exists()
    for cell in cells[1:]:
        source = cell["spec"]["source"]
        finished = Path(_moved(source["doneFile"], workspace)).stat().st_mtime_ns
        for artifact in source["artifacts"]:
            directory = Path(_moved(artifact["path"], workspace))
            assert matches(directory, artifact)
            assert all(p.stat().st_mtime_ns <= finished for p in directory.iterdir())


def test_producer_that_is_started_again_goes_on_where_it_was(workspace: Path):
    run_producer(workspace)
    finished = sorted((workspace / "out").glob("*/DONE"))
    times = [p.stat().st_mtime_ns for p in finished]
    finished[3].unlink()
    assert run_producer(workspace).stdout == f"finished {finished[3].parent.name}\n"
    assert [p.stat().st_mtime_ns for p in finished if p != finished[3]] == times[:3] + times[4:]


def test_producer_makes_the_same_bytes_on_another_pod(workspace: Path):
    run_producer(workspace)
    one = workspace / "out" / "cell-05"
    first = {p.relative_to(one): p.read_bytes() for p in one.rglob("*") if p.is_file()}
    shutil.rmtree(one)
    run_producer(workspace)
    assert {p.relative_to(one): p.read_bytes() for p in one.rglob("*") if p.is_file()} == first
    assert len(first) == 5


def test_producer_without_cells_json_fails_and_does_not_pass_for_done(workspace: Path):
    (workspace / ".gpupod" / "cells.json").unlink()
    assert run_producer(workspace).returncode != 0
