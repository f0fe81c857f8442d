"""`python -m nodekit.enter COMMAND...`: prepares everything that needs the network, then runs COMMAND in namespaces.

Processes, mounts and interfaces of the node live in a PID, a mount, a network and an IPC namespace of their own and
end with it, however it ends. Where namespaces or root are missing: one line, and exit code 0.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from gpupod_rehearsal.controlplane import ProgressLine, ensure_programs
from helmkit import program as helm
from nodekit import images, programs
from nodekit.network import set_up

INSIDE = "GPUPOD_NODE_IMAGES"
"""Set inside: the folder with the image archives."""
FULL = "GPUPOD_E2E_FULL"
"""Set outside: also what needs programs that are not of a cluster."""
_TMPFS = ("/run", "/var/log", "/var/lib/cni", "/etc/cni")
"""Where programs of the node write by habit; inside the namespace these places are its own."""


def main(command: list[str]) -> int:
    if INSIDE in os.environ:
        return _inside(command)
    reason = programs.why_not()
    if reason is not None:
        print(f"skipped: {reason}", flush=True)
        return 0
    line = ProgressLine()
    ensure_programs(["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"], report=line)
    programs.ensure(line)
    if FULL in os.environ:
        helm.program(line)
    line.close()
    with tempfile.TemporaryDirectory(prefix="gpupod-node-") as folder:
        print("building the image", flush=True)
        images.prepare(Path(folder))
        try:
            return _enter(command, folder)
        finally:
            remove_cgroups()


def _enter(command: list[str], folder: str) -> int:
    flags = ["--mount", "--net", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
    order = ["setpriv", "--pdeathsig", "KILL", "unshare", *flags, sys.executable, "-m", "nodekit.enter", *command]
    return subprocess.run(order, env={**os.environ, INSIDE: folder}, check=False).returncode


def _inside(command: list[str]) -> int:
    for place in _TMPFS:
        Path(place).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
    set_up()
    # This process is the first of its PID namespace: with it everything ends.
    return subprocess.run(command, check=False).returncode


def remove_cgroups() -> None:
    """What the kubelet and runc made; a group with a process in it cannot be removed, so only ours go."""
    for top in Path("/sys/fs/cgroup").glob("*/k8s.io"):
        for group in sorted(top.rglob("*"), reverse=True):
            if group.is_dir():
                _remove(group)
        _remove(top)


def _remove(group: Path) -> None:
    try:
        group.rmdir()
    except OSError as problem:
        print(f"{group} stays: {problem}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
