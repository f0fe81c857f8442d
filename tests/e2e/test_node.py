"""The operator's image on a real node: installed by kustomize, restricted, and the demo through it."""

from __future__ import annotations

import json
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from gpupod_rehearsal.demo.acts import play
from gpupod_rehearsal.demo.report import make_report
from gpupod_rehearsal.demo.stage import SYSTEM
from gpupod_rehearsal.demo.table import Screen
from nodekit import audit
from nodekit.stage import ROOT, NodeStage

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def test_its_pods_are_ready_under_the_restricted_policy(stage: NodeStage) -> None:
    labels = json.loads(await stage.kubectl("get", "namespace", SYSTEM, "-o", "json"))["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    pods = await stage.pods()
    assert len(pods) == 2
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert pod["spec"]["serviceAccountName"] == "gpupod-operator"
        assert container["resources"]["requests"]
        assert container["resources"]["limits"]["memory"]
        assert pod["status"]["containerStatuses"][0]["ready"]
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    with pytest.raises(RuntimeError, match="violates PodSecurity"):
        await stage.kubectl("-n", SYSTEM, "run", "loose", "--image=gpupod.dev/pause:1")


async def test_one_sweep_one_wedged_host_nothing_lost(stage: NodeStage) -> None:
    with Screen(Console(file=StringIO())) as screen:
        story = await play(stage, screen)
    report = await make_report(stage, story)
    assert report.problems == []
    assert (report.verified, report.commits, report.lost) == (16, 16, [])
    assert report.leaked == Decimal(0)
    assert len(report.pods) == 2
    assert story.cause == "PortLost"
    assert story.login is not None
    assert "logged in as root" in story.login
    logs = await stage.logs()
    assert "creating a pod" in logs
    assert not [s for s in (stage.hub_token, stage.runpod_key) if s in logs]


async def test_every_right_is_used_and_none_is_missing(stage: NodeStage, folder: Path) -> None:
    rights = list(audit.granted(yaml.safe_load_all((ROOT / "manifests" / "base" / "rbac.yaml").read_text())))
    assert len(rights) > 20
    events = audit.read(folder)
    assert audit.refused(events) == []
    print(*audit.unused(rights, events), sep="\n")
    assert audit.unused(rights, events) == []
