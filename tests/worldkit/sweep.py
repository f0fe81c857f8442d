"""A sweep on a rented pod with real files: its stage, its cells, and the pod's disk as the test sees it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpupod_rehearsal.demo.stage import API, NAMESPACE, Stage
from worldkit.fixtures import GPU, Theatre

REPO = "example-org/sweep-results"
"""The repository that the stage's token may write."""
IMAGE = "runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04"


def cell(name: str, *, repo: str = REPO, pod: str = "sweep", token_from: str = "hf-token") -> dict[str, Any]:
    """A SweepCell with one artifact of one file, `<out>/<name>/evals/score.json`."""
    out = f"/workspace/out/{name}"
    return {
        "apiVersion": API,
        "kind": "SweepCell",
        "metadata": {"name": name},
        "spec": {
            "podRef": {"name": pod},
            "sweep": "sweep",
            "source": {
                "doneFile": f"{out}/DONE",
                "artifacts": [{"name": "evals", "path": f"{out}/evals", "files": ["score.json"]}],
            },
            "destination": {
                "repo": repo,
                "path": f"sweep/{name}",
                "tokenSecretRef": {"name": token_from, "key": "token"},
            },
            "upload": {"progressDeadline": "10s"},
        },
    }


def finish(name: str) -> str:
    """Shell that writes a whole cell, its done file last."""
    out = shlex.quote(f"/workspace/out/{name}")
    return f"mkdir -p {out}/evals && echo {{}} > {out}/evals/score.json && echo done > {out}/DONE"


def gpupod(script: Sequence[str], name: str = "sweep", **spec: Any) -> dict[str, Any]:
    """A GpuPod that runs these lines of shell and then goes on working, with a wedge clock of seconds."""
    work = "\n".join((*script, "exec sleep 100000"))
    whole: Mapping[str, Any] = {
        "placement": {"candidates": [{"gpuType": GPU}]},
        "container": {"image": IMAGE},
        "health": {"startTimeout": "60s", "sshWait": "6s", "wedgeAfter": "8s"},
        "workload": {"command": ["bash", "-euc", work]},
    }
    return {"apiVersion": API, "kind": "GpuPod", "metadata": {"name": name}, "spec": {**whole, **spec}}


async def repository(stage: Stage, name: str, *, private: bool = False) -> None:
    """A dataset repository; the token of the stage may write only those of example-org and researcher."""
    body = {"id": name, "private": private}
    async with stage.session.post(f"{stage.hub_url}/_hub/repos", json=body) as answer:
        answer.raise_for_status()


async def disk(theatre: Theatre, pod_id: str) -> Path:
    """/workspace of a pod, as a folder of this machine."""
    pods = (await theatre.stage.sim("GET", "/_sim/pods"))["pods"]
    return Path(next(p["directory"] for p in pods if p["podId"] == pod_id)) / "disk"


async def cell_until(theatre: Theatre, name: str, told: Any, within: float = 60) -> Any:
    """The SweepCell once it is as told, by watch."""
    return await theatre.admin.watch_until("SweepCell", name, told, namespace=NAMESPACE, timeout=within)
