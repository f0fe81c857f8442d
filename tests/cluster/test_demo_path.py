"""The demo's path, on real parts: 16 cells, one wedged host, nothing lost, nothing leaked, plain ssh to the new pod."""

from decimal import Decimal
from io import StringIO

import pytest
from rich.console import Console

from gpupod_rehearsal.demo.acts import play
from gpupod_rehearsal.demo.report import make_report
from gpupod_rehearsal.demo.stage import API, NAMESPACE, Stage, StageOptions
from gpupod_rehearsal.demo.table import Screen
from gpupod_rehearsal.hosts import NamespacesUnavailable


async def test_one_sweep_one_wedged_host_nothing_lost() -> None:
    try:
        await walk()
    except NamespacesUnavailable as error:
        pytest.skip(str(error))


async def walk() -> None:
    async with Stage(StageOptions(say=lambda _: None)) as stage:
        with Screen(Console(file=StringIO())) as screen:
            story = await play(stage, screen)
        report = await make_report(stage, story)
        assert report.problems == []
        assert (report.verified, report.commits, report.lost) == (16, 16, [])
        assert report.leaked == Decimal(0)
        assert len(report.pods) == 2
        assert story.cause == "PortLost"
        assert story.receipt is not None
        assert story.receipt["podId"] == story.first_pod
        assert story.receipt["verified"] + len(story.receipt["rerun"]) == 16
        assert story.login is not None
        assert "logged in as root" in story.login
        pod = await stage.kube.get(API, "GpuPod", "sweep", NAMESPACE)
        assert pod is not None
        assert pod["status"]["migrations"] == 1
        assert pod["status"]["history"][0]["podId"] == story.first_pod
        name, host, port, *_ = story.pods_conf.splitlines()[-1].split()
        assert name == "sweep"
        assert f"{host}:{port}" in story.login
        secrets = (stage.hub_token, stage.runpod_key)
        logs = "".join(f.read_text(errors="replace") for f in stage.workdir.glob("*.log"))
        assert not [s for s in secrets if s in logs]
