"""The agent's file tree as it is put on a pod: a tar of gpupod_cell, named by the hash of its content."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "gpupod_cell"


@dataclass(frozen=True, slots=True)
class AgentTree:
    """`tar` holds gpupod_cell/*.py and VERSION, which holds `hash`; equal sources give equal bytes."""

    hash: str
    tar: bytes

    @classmethod
    def load(cls) -> AgentTree:
        """Read the installed package without importing it. Raises RuntimeError when it is not installed."""
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise RuntimeError(f"the package {PACKAGE} is not installed beside the operator")
        folder = Path(spec.origin).parent
        files = {f"{PACKAGE}/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
        whole = hashlib.sha256()
        for name, data in files.items():
            whole.update(f"{name} {hashlib.sha256(data).hexdigest()}\n".encode())
        version = whole.hexdigest()[:32]
        return cls(version, _tar({**files, "VERSION": f"{version}\n".encode()}))


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()
