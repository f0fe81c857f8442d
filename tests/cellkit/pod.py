"""A pod's disk with an agent on it, run as real processes against the simulated Hub."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import gpupod_cell
from gpupod_rehearsal.hub.simulator import HubSimulator

SOURCES = Path(gpupod_cell.__file__).parent.parent
REPO = "ada/sweeps"
TOKEN = "hf_testtokenAda"
READ_ONLY = "hf_testtokenReader"


class Pod:
    """The agent's part of a pod: `.gpupod`, tokens in memory, and a place for cells."""

    def __init__(self, home: Path, endpoint: str) -> None:
        self.work = home / "workspace"
        self.root = self.work / ".gpupod"
        self.secrets = home / "shm"
        self.secrets.mkdir(parents=True)
        (self.root / "agent").mkdir(parents=True)
        (self.root / "agent" / "settings.json").write_text(json.dumps({"hubEndpoint": endpoint}))
        self.cells: list[dict[str, Any]] = []
        self.attempt = "a1"
        self.processes: list[asyncio.subprocess.Process] = []
        self.logs: list[str] = []

    def order(self, name: str, **changes: Any) -> dict[str, Any]:
        """Add a cell to the orders and hand over its token."""
        cell = {
            "name": name,
            "uid": f"uid-{name}",
            "namespace": "team",
            "sweep": "s",
            "state": "Pending",
            "doneFile": str(self.work / "out" / name / "DONE"),
            "artifacts": [
                {"name": "evals", "path": str(self.work / "out" / name / "evals"), "include": ["*.json"], "minFiles": 1}
            ],
            "destination": {"repo": REPO, "type": "dataset", "revision": "main", "path": f"sweeps/s/{name}"},
            "tokenFrom": "Secret",
            "progressDeadlineSeconds": 600,
            "manifest": None,
            "commit": None,
            **changes,
        }
        self.cells = [entry for entry in self.cells if entry["uid"] != cell["uid"]] + [cell]
        self.write_orders()
        self.give_token(cell["uid"])
        return cell

    def write_orders(self) -> None:
        whole = {"format": 1, "podId": "pod1", "attempt": self.attempt, "cells": self.cells}
        partial = self.root / "cells.json.new"
        partial.write_text(json.dumps(whole))
        partial.replace(self.root / "cells.json")

    def give_token(self, uid: str, token: str = TOKEN) -> None:
        (self.secrets / f"token-{uid}").write_text(token)

    def produce(self, name: str, files: dict[str, bytes] | None = None, *, done: bool = True) -> Path:
        """Write a cell's files, then its done file."""
        base = self.work / "out" / name
        for path, data in (files or {"evals/a.json": b'{"score":1}', "evals/b.json": b'{"score":2}'}).items():
            target = base / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        if done:
            (base / "DONE").write_text("done\n")
        return base

    def environment(self) -> dict[str, str]:
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "GPUPOD_"))}
        return {
            **plain,
            "PYTHONPATH": str(SOURCES),
            "GPUPOD_ROOT": str(self.root),
            "GPUPOD_SECRETS": str(self.secrets),
            "TMPDIR": str(self.secrets),
        }

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gpupod_cell",
            *arguments,
            env=self.environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        process = await self.start(*arguments)
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    async def once(self, name: str, *more: str) -> tuple[int, dict[str, Any]]:
        """Exit code and receipt of one upload."""
        code, out, err = await self.run("once", "--cell", name, *more)
        assert TOKEN not in out + err
        assert len(out.splitlines()) == 1, err
        return code, json.loads(out)

    async def loop(self) -> None:
        """The loop until it has nothing left to do."""
        code, _, err = await self.run("watch", "--every", "0.05", "--until-idle")
        assert code == 0, err
        self.logs.append(err)

    def state(self) -> dict[str, Any]:
        path = self.root / "agent" / "state.json"
        return json.loads(path.read_text()) if path.exists() else {"agent": {}, "cells": {}}

    async def until(self, what: Any, seconds: float = 30) -> Any:
        """Wait until `what()` holds, looking at the world again and again."""
        async with asyncio.timeout(seconds):
            while not (seen := what()):
                await asyncio.sleep(0.02)
        return seen


def ours(hub: HubSimulator) -> list[Any]:
    """The commits that carry a cell, newest first."""
    return [commit for commit in hub.repo(REPO).commits() if commit.title.startswith("cell ")]
