"""The container engine of this machine: docker where its daemon answers, else buildah and podman in a store apart."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imagekit import base

IMAGE = "localhost/gpupod-operator:test"
BASE = "localhost/gpupod-test-base:latest"
_MACHINES_OWN = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout")


class BuildFailed(RuntimeError):
    """The Dockerfile does not build; the message has the end of the output."""


@dataclass(frozen=True)
class Engine:
    """Command lines of one engine; `runner` is None where an image can be built and not run."""

    name: str
    builder: tuple[str, ...]
    build_flags: tuple[str, ...]
    runner: tuple[str, ...] | None
    run_flags: tuple[str, ...]

    def build(self, context: Path, scratch: Path) -> None:
        """Build the Dockerfile of a checkout as IMAGE. Raises BuildFailed, NoBase."""
        order = [*self.builder, *self.build_flags, *_secrets(scratch), "-t", IMAGE]
        named = os.environ.get("GPUPOD_IMAGE_BASE")
        if named is None and self.name != "docker":
            self._import_base()
            named = BASE
        if named is not None:
            order += ["--build-arg", f"BASE={named}"]
        done = subprocess.run([*order, str(context)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildFailed(f"{self.name}: {(done.stdout + done.stderr)[-3000:]}")
        if self.runner is not None and self.name == "buildah":
            # Layers of older checkouts; the store is ours alone.
            old = [*self.runner, "image", "prune", "--force", "--filter", "until=72h"]
            subprocess.run(old, capture_output=True, check=True)

    def command(self, *arguments: str, flags: Sequence[str] = ()) -> list[str]:
        """The command line that runs the image as the Deployment would: no capability, nothing to write to but /tmp."""
        if self.runner is None:
            raise RuntimeError("this engine cannot run an image")
        hard = ("--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--tmpfs=/tmp:size=16m")
        return [*self.runner, "run", "--rm", "--network=host", *hard, *self.run_flags, *flags, IMAGE, *arguments]

    def run(self, *arguments: str, flags: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run to the end, at most a minute."""
        order = self.command(*arguments, flags=flags)
        return subprocess.run(order, capture_output=True, text=True, check=False, timeout=60)

    def stop(self, name: str) -> None:
        """SIGTERM, 30 s, SIGKILL."""
        subprocess.run([*(self.runner or ()), "stop", "-t", "30", name], capture_output=True, check=True, timeout=60)

    def inspect(self) -> dict[str, Any]:
        """`image inspect` of IMAGE; docker and podman agree on Config and Size (bytes)."""
        order = [*(self.runner or ()), "image", "inspect", IMAGE]
        told = subprocess.run(order, capture_output=True, text=True, check=True)
        return dict(json.loads(told.stdout)[0])

    def _import_base(self) -> None:
        buildah = self.builder[:-1]
        if _answers(*buildah, "inspect", "--type", "image", BASE):
            return
        made = subprocess.run([*buildah, "from", "scratch"], capture_output=True, text=True, check=True).stdout.strip()
        try:
            subprocess.run([*buildah, "add", "-q", made, str(base.base_tar()), "/"], capture_output=True, check=True)
            subprocess.run([*buildah, "commit", "-q", made, BASE], capture_output=True, check=True)
        finally:
            subprocess.run([*buildah, "rm", made], capture_output=True, check=False)


def find() -> Engine | str:
    """The engine of this machine, or why there is none."""
    if shutil.which("docker") and _answers("docker", "version"):
        flags = ("--quiet",)
        return Engine("docker", ("docker", "build"), flags, ("docker",), ())
    if shutil.which("buildah") is None:
        return "neither a docker daemon nor buildah is here (apt-get install buildah podman runc debootstrap)"
    if os.geteuid() != 0:
        return "buildah without root is not tried here"
    if os.environ.get("GPUPOD_IMAGE_BASE") is None and (reason := base.why_not()) is not None:
        return reason
    store = ("--root", str(base.cache() / "store"), "--runroot", str(base.cache() / "run"))
    flags = ("--quiet", "--layers", "--isolation=chroot", "--network=host")
    runner = ("podman", *store) if shutil.which("podman") else None
    limits: tuple[str, ...] = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--read-only-tmpfs=false")
    # A kubelet gives a uid no passwd entry, either.
    limits = (*limits, "--passwd=false")
    if runner is not None and shutil.which("runc"):
        # crun refuses the hybrid cgroups of older kernels.
        runner = (*runner, "--runtime=runc")
    return Engine("buildah", ("buildah", *store, "bud"), flags, runner, limits)


def _answers(*order: str) -> bool:
    return subprocess.run(order, capture_output=True, check=False, timeout=60).returncode == 0


def _secrets(scratch: Path) -> list[str]:
    """This machine's way to a package index, for the build alone: mirror, proxy, certificate authority."""
    order = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(order, capture_output=True, text=True, check=True).stdout
    pairs = [line.split("=", 1) for line in listed.splitlines() if "=" in line]
    # The environment is listed last and wins, as it does for pip.
    settings = {key.rsplit(".", 1)[-1]: str(ast.literal_eval(value)) for key, value in pairs}
    lines = ["[global]", *(f"{key} = {value}" for key, value in settings.items() if key in _MACHINES_OWN)]
    flags = []
    if "cert" in settings:
        lines.append("cert = /run/secrets/ca.crt")
        flags.append(f"--secret=id=ca.crt,src={settings['cert']}")
    file = scratch / "pip.conf"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [f"--secret=id=pip.conf,src={file}", *flags]
