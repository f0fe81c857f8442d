"""Operations on pods that have an inside: a real SSH server, a workload, an agent, and cells on a simulated Hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaoskit.operations import Operation
from chaoskit.scene import Scene, gpupod
from gpupod_operator.api.names import GPUPODS, SWEEPCELLS
from gpupod_rehearsal.hub.simulator import HubSimulator

REPO = "ada/sweeps"
TOKEN = "hf_testTokenOfTheSweep"
FINISHED = ("c0", "c1")
STARTED = "started"
"""A file on the pod with a line for each start of the workload."""
_WORK = f"""
echo $$ >> /workspace/{STARTED}
for cell in {" ".join(FINISHED)}; do
  mkdir -p /workspace/out/$cell/evals
  echo "{{\\"cell\\": \\"$cell\\"}}" > /workspace/out/$cell/evals/score.json
  echo done > /workspace/out/$cell/DONE
done
mkdir -p /workspace/out/endless/evals
exec sleep 100000
"""


def _cell(name: str) -> dict[str, Any]:
    out = f"/workspace/out/{name}"
    return {
        "podRef": {"name": "one"},
        "sweep": "sweep",
        "source": {
            "doneFile": f"{out}/DONE",
            "artifacts": [{"name": "evals", "path": f"{out}/evals", "files": ["score.json"]}],
        },
        "destination": {"repo": REPO, "path": f"s/{name}", "tokenSecretRef": {"name": "hf", "key": "token"}},
        "upload": {"progressDeadline": "5s"},
    }


async def _sweep(scene: Scene) -> None:
    """Two cells that end, and one that never does."""
    scene.cluster.secrets[("ml", "hf")] = {"token": TOKEN.encode()}
    for name in (*FINISHED, "endless"):
        scene.cluster.apply(SWEEPCELLS, name, _cell(name))
    spec = {**gpupod(workload={"command": ["bash", "-euc", _WORK]}), "remediation": {}}
    scene.cluster.apply(GPUPODS, "one", spec)


async def _swept(scene: Scene) -> None:
    await _sweep(scene)
    await scene.until(lambda: _saved(scene))


async def _delete(scene: Scene) -> None:
    scene.cluster.delete(GPUPODS, "one")


async def _wedge(scene: Scene) -> None:
    scene.sim.faults.add("wedge-later", pod=scene.pod_id() or "")
    scene.sim.cloud.touch()


async def _stop(scene: Scene) -> None:
    scene.cluster.edit(GPUPODS, "one", state="Stopped")


def _verified(scene: Scene) -> bool:
    return all(
        ((scene.cluster.find(SWEEPCELLS, name) or {}).get("status") or {}).get("phase") == "Verified"
        for name in FINISHED
    )


def _at_work(scene: Scene) -> bool:
    return scene.ready() and (scene.status().get("workload") or {}).get("state") == "Running"


def _saved(scene: Scene) -> bool:
    return _verified(scene) and _at_work(scene)


def _moved(scene: Scene) -> bool:
    return _saved(scene) and len(scene.pods()) == 2 and len(scene.alive()) == 1


def _stopped(scene: Scene) -> bool:
    return scene.status().get("phase") == "Stopped" and [str(p.status) for p in scene.alive()] == ["EXITED"]


def _gone(scene: Scene) -> bool:
    return not scene.cluster.objects[GPUPODS] and not scene.alive()


async def _nothing(scene: Scene) -> None:
    """The world is empty."""


SWEEPS = {
    operation.name: operation
    for operation in (
        Operation("sweep", _nothing, _sweep, _saved),
        Operation("sweep-wedged", _swept, _wedge, _moved, pods=2),
        Operation("sweep-stopped", _swept, _stop, _stopped),
        Operation("sweep-deleted", _swept, _delete, _gone),
    )
}


def started_twice(folder: Path) -> list[str]:
    """Pods, of those whose disk is still there, on which the workload was started more than once."""
    found = []
    for file in folder.glob(f"pods/*/disk/{STARTED}"):
        lines = len(file.read_text().splitlines())
        if lines > 1:
            found.append(f"the workload was started {lines} times on pod {file.parents[1].name}")
    return found


def committed_twice(hub: HubSimulator) -> list[str]:
    """Each finished cell is on the Hub, in one commit."""
    titles = [c.title for c in hub.repo(REPO).commits()]
    counts = {name: titles.count(f"cell {name}") for name in (*FINISHED, "endless")}
    wanted = {**dict.fromkeys(FINISHED, 1), "endless": 0}
    return [] if counts == wanted else [f"commits of cells on the Hub: {counts}"]
