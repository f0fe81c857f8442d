"""Where things lie on the pod."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT_ROOT = "/workspace/.gpupod"
DEFAULT_SECRETS = "/dev/shm/gpupod"  # noqa: S108 - a fixed place in memory, made 0700 by whoever writes the tokens


@dataclass(frozen=True)
class Layout:
    """Paths below the pod's `.gpupod` folder and of the tokens in memory.

    GPUPOD_ROOT and GPUPOD_SECRETS move them, for a person who tries the agent elsewhere.
    """

    root: Path
    secrets: Path

    @classmethod
    def find(cls, root: str | None = None) -> Layout:
        chosen = root or os.environ.get("GPUPOD_ROOT") or DEFAULT_ROOT
        return cls(Path(chosen), Path(os.environ.get("GPUPOD_SECRETS") or DEFAULT_SECRETS))

    @property
    def cells(self) -> Path:
        return self.root / "cells.json"

    @property
    def accepted(self) -> Path:
        """The last orders that could be read; uploads work from them while cells.json is broken."""
        return self.agent / "orders.json"

    @property
    def agent(self) -> Path:
        return self.root / "agent"

    @property
    def state(self) -> Path:
        return self.agent / "state.json"

    @property
    def settings(self) -> Path:
        return self.agent / "settings.json"

    @property
    def version(self) -> Path:
        """Names the tree that should run now; another hash than the running one means: finish and go."""
        return self.agent / "VERSION"

    @property
    def stop(self) -> Path:
        """While this file exists the loop ends after the commit in hand."""
        return self.agent / "stop"

    def wants_end(self, tree_hash: str) -> bool:
        """A stop file lies there, or another tree than this one is to run."""
        if self.stop.exists():
            return True
        try:
            wanted = self.version.read_text().strip()
        except FileNotFoundError:
            return False
        return bool(wanted) and wanted != tree_hash

    @property
    def lock(self) -> Path:
        return self.agent / "lock"

    @property
    def next_lock(self) -> Path:
        """Held by the one process that waits to become the loop."""
        return self.agent / "lock.next"

    @property
    def upload_lock(self) -> Path:
        """Held while a cell is uploaded, by the loop's child or by a person's `once`."""
        return self.agent / "lock.upload"

    def kept(self, uid: str) -> Path:
        return self.agent / "manifests" / f"{uid}.json"

    def token(self, uid: str) -> Path:
        return self.secrets / f"token-{uid}"


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace `path` whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file, None when there is no file. Raises ValueError when it is not a JSON object."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError(  # noqa: TRY004 - callers know one error for a file that cannot be used
            f"{path} does not hold a JSON object"
        )
    return value


def encode(value: Any) -> bytes:
    """JSON as every file of the agent has it: UTF-8, sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
