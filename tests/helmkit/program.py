"""helm, built once from a pinned Go module."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from gpupod_rehearsal.controlplane.build import build, remove_leftovers
from gpupod_rehearsal.controlplane.modules import GoModule
from gpupod_rehearsal.controlplane.toolchain import find_go

HELM = GoModule("helm", {"helm": "helm.sh/helm/v4/cmd/helm"}, Path(__file__).parent)
CHART = Path(__file__).parents[2] / "manifests" / "helm" / "gpupod-operator"


class HelmRefused(RuntimeError):
    """helm said no; the message is what it said."""


def program(report: Callable[[str], None] = lambda _: None) -> Path:
    """Path of helm, in `$XDG_CACHE_HOME/gpupod/helm/<fingerprint>`; built where it is missing, under a lock."""
    pinned = (HELM.folder / "go.mod").read_bytes() + (HELM.folder / "go.sum").read_bytes()
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "gpupod" / "helm" / hashlib.sha256(pinned).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_leftovers(folder)
        if not (folder / "helm").exists():
            build(find_go(HELM.go_version), HELM, ["helm"], folder, report=report, abandon=threading.Event())
    return folder / "helm"


def helm(*arguments: str, home: Path) -> str:
    """Its output; what it keeps for itself goes below `home`. Raises HelmRefused."""
    env = {**os.environ, **{f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}}
    done = subprocess.run([str(program()), *arguments], env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HelmRefused(f"{done.stderr}{done.stdout}".strip())
    return done.stdout
