"""Runs the production command with its ports watched, and kills this very process at a point, by signal.

`python -m mortalkit.fate FOLDER run ...`, from `tests`. In FOLDER:

- `armed` (may come later): from then on points count; its lines are the beginnings of names that do.
- `killed`: places at which a process died before. This one dies at the first place that is not among them, and adds it.
- `at`: instead, die at the place that stands in here, once.
- `forgetful`: an operator that finds this looks for no pod that it may have made, for the judge to find.
- `passed`: every place that was passed while armed, in order.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp

from gpupod_operator.api.names import GPUPODS
from gpupod_operator.cli.main import main as production
from gpupod_operator.core.gpupod import decide
from gpupod_operator.handlers import lifecycle, operator
from gpupod_operator.runpod.accounts import Accounts
from gpupod_operator.runtime.settings import Settings
from gpupod_operator.runtime.world import World

PACE: dict[str, Any] = {
    "order_patience_least": timedelta(seconds=1.5),
    "backoff_first": timedelta(seconds=1.5),
    "recheck": timedelta(seconds=3),
}
"""A twentieth of what no flag sets: an order that was lost with its process is given again after 1.5 s."""


class Fate:
    """A place is the name of a point and what is known of the object there: `before runpod write [Provisioning ...]`.

    Without the object's state each look of a loop would be a place of its own, and there would be no end of them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: tuple[str, ...] | None = None
        self._killed: set[str] = set()
        self._wanted: str | None = None
        self.world: World | None = None

    def at(self, name: str) -> None:
        """Here the process may die."""
        if self._names is None and not self._arm():
            return
        if not name.endswith(self._names or ()):
            return
        place = f"{name} [{self._where()}]"
        _append(self._folder / "passed", place)
        if place != self._wanted if self._wanted is not None else place in self._killed:
            return
        _append(self._folder / "killed", place)
        os.kill(os.getpid(), signal.SIGKILL)

    def _arm(self) -> bool:
        armed, killed, wanted = (self._folder / name for name in ("armed", "killed", "at"))
        if not armed.exists():
            return False
        self._names = tuple(armed.read_text().split("\n"))
        self._killed = set(killed.read_text().splitlines()) if killed.exists() else set()
        self._wanted = wanted.read_text() if wanted.exists() else None
        if self._wanted in self._killed:
            self._wanted = ""  # once is enough: no place is called so
        return True

    def _where(self) -> str:
        if self.world is None:
            return "starting"
        found = self.world.store.all(GPUPODS)
        return ", ".join(_state(raw) for raw in found) or "no object"


def _state(raw: dict[str, Any]) -> str:
    """What tells one moment of an object's life from another and does not tick."""
    status = raw.get("status") or {}
    attempt = status.get("attempt") or {}
    reasons = {c["type"]: c["reason"] for c in status.get("conditions") or []}
    words = [
        status.get("phase") or "new",
        reasons.get("Ready"),
        (status.get("migration") or {}).get("step"),
        "pod" if attempt.get("podId") else "no pod",
        "unknown" if attempt.get("unknownSince") else None,
        f"{len(status.get('history') or [])} before" if status.get("history") else None,
        "deleted" if raw["metadata"].get("deletionTimestamp") else None,
        None if raw["metadata"].get("finalizers") else "unheld",
    ]
    return " ".join(word for word in words if word)


def _append(file: Path, line: str) -> None:
    # one write call, which is the kernel's when the signal comes
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


class Watched:
    """A port: each call has a point before it and one after it, also after one that raised."""

    def __init__(self, inner: Any, name: str, at: Callable[[str], None]) -> None:
        self._inner = inner
        self._name = name
        self._at = at

    def __getattr__(self, method: str) -> Any:
        target = getattr(self._inner, method)

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._at(f"before {self._name}.{method}")
            try:
                return await target(*args, **kwargs)
            finally:
                self._at(f"after {self._name}.{method}")

        return call


def install(fate: Fate) -> None:
    """Put points around everything that the production process does to the outside."""

    class MortalWorld(World):
        def __init__(self, **parts: Any) -> None:
            for port in ("cluster", "hub", "shell"):
                parts[port] = Watched(parts[port], port, fate.at)
            super().__init__(**parts)
            fate.world = self

    def accounts(*args: Any, on_call: Any, permit: Any, **more: Any) -> Accounts:
        def called(call: str, *told: Any) -> None:
            fate.at(f"after runpod.{call}")
            on_call(call, *told)

        def permitted() -> bool:
            fate.at("before runpod write")
            return bool(permit())

        return Accounts(*args, on_call=called, permit=permitted, **more)

    policy_of = Settings.policy
    Settings.policy = lambda self: replace(policy_of(self), **PACE)  # type: ignore[method-assign]

    log_in = lifecycle.session

    async def session(**kwargs: Any) -> Any:
        made = await log_in(**kwargs)
        made.aiohttp_session.trace_configs.append(_patches(fate))
        return made

    operator.World, operator.Accounts, lifecycle.session = MortalWorld, accounts, session  # type: ignore[assignment,misc]


def _patches(fate: Fate) -> aiohttp.TraceConfig:
    """kopf writes our finalizer over its own connection, and nothing else."""
    trace = aiohttp.TraceConfig()

    async def before(_: Any, __: Any, request: aiohttp.TraceRequestStartParams) -> None:
        if request.method == "PATCH":
            fate.at("before cluster.set_finalizer")

    async def after(_: Any, __: Any, request: aiohttp.TraceRequestEndParams) -> None:
        if request.method == "PATCH":
            fate.at("after cluster.set_finalizer")

    trace.on_request_start.append(before)
    trace.on_request_end.append(after)
    trace.freeze()
    return trace


def main(folder: Path, arguments: list[str]) -> None:
    """Become the operator."""
    sys.argv = ["gpupod-operator", *arguments]
    install(Fate(folder))
    if (folder / "forgetful").exists():
        decide.reconcile_identity = decide.settle_unknown_create = lambda scope: None
    production()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
