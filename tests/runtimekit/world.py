"""The real World over the memory's outside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from gpupod_operator.runtime.metrics import Metrics
from gpupod_operator.runtime.settings import Settings
from gpupod_operator.runtime.world import World
from runtimekit.accounts import MemoryAccounts
from runtimekit.cluster import MemoryCluster

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
INSTANCE = "inst"


class SetClock:
    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at

    def step(self, **delta: float) -> None:
        self.at += timedelta(**delta)


class Kit:
    """A world and its outside. `own_key`: a file that holds the operator's own key."""

    def __init__(self, *, rights: set[str] | None = None, own_key: Path | None = None, **settings: Any) -> None:
        self.clock = SetClock()
        self.cluster = MemoryCluster(rights)
        self.accounts = MemoryAccounts(self.clock)
        self.metrics = Metrics()
        self.world = World(
            settings=Settings(runpod_key_file=own_key, **settings),
            clock=self.clock,
            cluster=cast("Any", self.cluster),
            accounts=cast("Any", self.accounts),
            hub=cast("Any", None),
            shell=cast("Any", None),
            metrics=self.metrics,
            instance=INSTANCE,
            may_act=lambda: True,
            agent_tree="tree",
            entropy=lambda: "0123456789abcdef",
        )


def gpupod(name: str, *, namespace: str = "ns", uid: str = "", **status: Any) -> dict[str, Any]:
    """A GpuPod as committed."""
    return {
        "metadata": _metadata(name, namespace, uid),
        "spec": {"placement": {"candidates": [{"gpuType": "H100"}]}, "container": {"image": "img"}},
        "status": status,
    }


def sweepcell(
    name: str, *, pod: str = "p", namespace: str = "ns", uid: str = "", created: datetime = NOW, **destination: str
) -> dict[str, Any]:
    """A SweepCell as committed; `destination` overrides parts of its own."""
    artifact = {"name": "a", "path": f"/workspace/{name}", "files": ["x"]}
    where = {"repo": "o/r", "path": name, "tokenSecretRef": {"name": "t", "key": "k"}}
    return {
        "metadata": _metadata(name, namespace, uid) | {"creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "spec": {
            "podRef": {"name": pod},
            "sweep": "s",
            "source": {"doneFile": f"/workspace/{name}/DONE", "artifacts": [artifact]},
            "destination": where | destination,
        },
        "status": {},
    }


def _metadata(name: str, namespace: str, uid: str) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "name": name,
        "uid": uid or f"uid-{name}",
        "resourceVersion": "1",
        "creationTimestamp": NOW.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
