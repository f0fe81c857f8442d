"""The demo's story: a sweep of 16 cells, a host that loses its public port after cell 7, a move, and the rest."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpupod_rehearsal.demo import manifests
from gpupod_rehearsal.demo.login import log_in
from gpupod_rehearsal.demo.stage import API, NAMESPACE, Stage
from gpupod_rehearsal.demo.table import Screen

WEDGE_AFTER = 7
"""Verified cells after which the host loses its port."""
LONGEST = 240.0
"""Seconds after which a demo that is not through has failed."""


class DemoFailed(RuntimeError):
    """The story did not come to its end; the message says where it stands."""


@dataclass(slots=True)
class Story:
    """What happened, for the report. Times are seconds on one monotonic clock."""

    began: float = field(default_factory=time.monotonic)
    first_pod: str | None = None
    second_pod: str | None = None
    second_ready: float | None = None
    fault: float | None = None
    detected: float | None = None
    cause: str | None = None
    gone: float | None = None
    ready_again: float | None = None
    verified_at_fault: int = 0
    receipt: dict[str, Any] | None = None
    pods_conf: str = ""
    ssh_config: str = ""
    login: str | None = None
    workspace: Path | None = None
    finished_there: set[str] = field(default_factory=set)
    pod: dict[str, Any] = field(default_factory=dict)
    cells: list[dict[str, Any]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


async def play(stage: Stage, screen: Screen) -> Story:
    """Apply the samples and watch until every cell is verified. Raises DemoFailed."""
    story = Story()
    for manifest in manifests.samples():
        await stage.kube.apply(manifest, NAMESPACE)
    try:
        async with asyncio.timeout(LONGEST):
            while not await _look(stage, story, screen):
                if stage.operator is not None and stage.operator.returncode is not None:
                    raise DemoFailed(f"the operator ended with code {stage.operator.returncode}: {stage.operator.log}")
                await asyncio.sleep(0.3)
    except TimeoutError:
        phase = (story.pod.get("status") or {}).get("message", "nothing was seen")
        raise DemoFailed(f"not through after {LONGEST:.0f} s; it says: {phase}") from None
    return story


async def _look(stage: Stage, story: Story, screen: Screen) -> bool:
    """One look at the world; True when the story is over."""
    pod = await stage.kube.get(API, "GpuPod", "sweep", NAMESPACE)
    cells = await stage.kube.items(API, "SweepCell", NAMESPACE)
    if pod is None:
        return False
    story.pod, story.cells = pod, cells
    status = pod.get("status") or {}
    _remember(story, status)
    verified = sum((c.get("status") or {}).get("phase") == "Verified" for c in cells)
    pod_id = (status.get("attempt") or {}).get("podId")
    ready = _condition(status, "Ready") == "True"
    if story.fault is None and verified >= WEDGE_AFTER and ready and pod_id is not None:
        await _wedge(stage, story, pod_id, verified)
    if story.fault is not None:
        _look_inside(story)
        _follow(story, status, pod_id, ready)
    await _conf(stage, story)
    if story.ready_again is not None and story.login is None:
        story.login = await log_in(stage, story)
    screen.show(pod, cells, story)
    return bool(cells) and verified == len(cells) and story.login is not None and _settled(status)


def _settled(status: dict[str, Any]) -> bool:
    """The workload succeeded and the pod was stopped by `onSuccess`."""
    return status.get("phase") == "Stopped"


async def _wedge(stage: Stage, story: Story, pod_id: str, verified: int) -> None:
    for truth in (await stage.sim("GET", "/_sim/pods"))["pods"]:
        if truth["podId"] == pod_id:
            story.workspace = Path(truth["directory"]) if truth.get("directory") else None
    await stage.sim("POST", f"/_sim/wedge?pod={pod_id}")
    story.first_pod, story.fault, story.verified_at_fault = pod_id, time.monotonic(), verified
    story.messages.append(f"the host of pod {pod_id} lost its public port; RunPod goes on saying RUNNING")


def _look_inside(story: Story) -> None:
    """Which cells are finished on the disk that is about to be lost. Nobody but the story may look there."""
    if story.workspace is None or story.gone is not None:
        return
    for cell in story.cells:
        done = story.workspace / "disk" / str(cell["spec"]["source"]["doneFile"]).removeprefix("/workspace/")
        if done.exists():
            story.finished_there.add(cell["metadata"]["name"])


def _follow(story: Story, status: dict[str, Any], pod_id: str | None, ready: bool) -> None:
    now = time.monotonic()
    if story.detected is None and _condition(status, "Reachable") == "False":
        story.detected = now
    if story.cause is None and _condition(status, "Wedged") == "True":
        story.cause = _reason(status, "Wedged")
    if status.get("receipt") and story.receipt is None:
        story.receipt = status["receipt"]
    gone = any(h.get("podId") == story.first_pod for h in status.get("history") or [])
    if story.gone is None and gone:
        story.gone = now
    if story.ready_again is None and ready and pod_id not in (None, story.first_pod):
        story.ready_again, story.second_pod = now, pod_id


async def _conf(stage: Stage, story: Story) -> None:
    """The rendering while there is a row; the last one is what the report shows."""
    conf = await stage.kube.get("v1", "ConfigMap", "pods-conf", NAMESPACE)
    data = (conf or {}).get("data") or {}
    rows = [line for line in data.get("pods.conf", "").splitlines() if line and not line.startswith("#")]
    if rows:
        story.pods_conf, story.ssh_config = data["pods.conf"], data["ssh_config"]
        story.messages = story.messages[-50:]


def _remember(story: Story, status: dict[str, Any]) -> None:
    message = status.get("message")
    if message and (not story.messages or story.messages[-1] != message):
        story.messages.append(message)


def _condition(status: dict[str, Any], kind: str) -> str | None:
    return next((c["status"] for c in status.get("conditions") or [] if c["type"] == kind), None)


def _reason(status: dict[str, Any], kind: str) -> str | None:
    return next((c["reason"] for c in status.get("conditions") or [] if c["type"] == kind), None)
