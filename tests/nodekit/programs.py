"""Programs of the node, built from pinned Go modules, and those that Debian has."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from gpupod_rehearsal.controlplane.build import build, remove_leftovers
from gpupod_rehearsal.controlplane.modules import GoModule
from gpupod_rehearsal.controlplane.toolchain import find_go

HERE = Path(__file__).parent
NODE = GoModule(
    "kubernetes",
    {name: f"k8s.io/kubernetes/cmd/{name}" for name in ("kubelet", "kube-proxy", "kube-scheduler")},
    HERE,
    stamped="k8s.io/kubernetes",
)
RUNTIME = GoModule(
    "containerd",
    {
        name: f"github.com/containerd/containerd/v2/cmd/{name}"
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    },
    HERE,
)
MODULES = (NODE, RUNTIME)
CNI = Path("/usr/lib/cni")
PAUSE = "catatonit"
"""A static program that can wait for a signal: what keeps a pod's namespaces open."""
DEBIAN = {
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    PAUSE: "catatonit",
    "unshare": "util-linux",
    "buildah": "buildah",
    "podman": "podman",
}


def why_not() -> str | None:
    """Why no node can be had on this machine, in one line; None: it can."""
    if os.geteuid() != 0:
        return "a node needs root (namespaces, mounts, iptables)"
    missing = sorted({package for program, package in DEBIAN.items() if shutil.which(program) is None})
    if not (CNI / "bridge").exists():
        missing.append("containernetworking-plugins")
    return f"a node needs more of Debian: apt-get install {' '.join(missing)}" if missing else None


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/gpupod/node/<fingerprint of the pinned modules>`."""
    digest = hashlib.sha256()
    for module in MODULES:
        digest.update((module.folder / "go.mod").read_bytes() + (module.folder / "go.sum").read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "gpupod" / "node" / digest.hexdigest()[:16]


def ensure(report: Callable[[str], None]) -> Path:
    """The folder with all programs of the node; what is missing is built, under a lock."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_leftovers(folder)
        for module in MODULES:
            missing = [name for name in module.programs if not (folder / name).exists()]
            if missing:
                go = find_go(module.go_version)
                build(go, module, missing, folder, report=report, abandon=threading.Event())
    return folder
