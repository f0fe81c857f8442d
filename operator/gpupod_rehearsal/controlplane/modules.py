"""The two Go modules that pin the control plane, and what is built from them.

Each folder holds a go.mod and go.sum and no source of ours: the programs are `tool` dependencies.
etcd has a module of its own so that neither bends the versions of the other's libraries.
"""

import hashlib
import platform
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class GoModule:
    """A pinned Go module and the main packages that are taken from it, by program name."""

    name: str
    programs: dict[str, str]
    root: Path = _HERE
    stamped: str | None = None
    """The module of a Kubernetes program, which is linked with its version; None: nothing is stamped."""

    @property
    def folder(self) -> Path:
        """Where its go.mod and go.sum are."""
        return self.root / self.name

    @cached_property
    def go_mod(self) -> str:
        """Text of go.mod."""
        return (self.folder / "go.mod").read_text(encoding="utf-8")

    @property
    def go_version(self) -> tuple[int, int]:
        """The Go release (major, minor) that go.mod asks for."""
        match = re.search(r"^go (\d+)\.(\d+)", self.go_mod, re.MULTILINE)
        if match is None:
            raise ValueError(f"{self.folder / 'go.mod'} names no Go version")
        return int(match[1]), int(match[2])

    def version_of(self, module: str) -> str:
        """The version, such as v1.36.3, at which `module` is required."""
        match = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", self.go_mod, re.MULTILINE)
        if match is None:
            raise ValueError(f"{self.folder / 'go.mod'} does not require {module}")
        return match[1]

    @property
    def link_flags(self) -> str:
        """Flags of the linker: no symbols, and for Kubernetes the version that it reports of itself."""
        flags = "-s -w"
        if self.stamped is not None:
            version = self.version_of(self.stamped)
            major, minor = version.removeprefix("v").split(".")[:2]
            stamp = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
            flags += "".join(f" -X k8s.io/component-base/version.{key}={value}" for key, value in stamp.items())
        return flags


KUBERNETES = GoModule(
    "kubernetes",
    {
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    },
    stamped="k8s.io/kubernetes",
)
ETCD = GoModule("etcd", {"etcd": "go.etcd.io/etcd/server/v3"})
MODULES = (ETCD, KUBERNETES)


def fingerprint() -> str:
    """Names the cache folder: changes with any pinned version, any flag of the linker, and the machine's kind."""
    digest = hashlib.sha256(f"{sys.platform}/{platform.machine()}".encode())
    for module in MODULES:
        digest.update(module.link_flags.encode())
        digest.update((module.folder / "go.mod").read_bytes())
        digest.update((module.folder / "go.sum").read_bytes())
    return digest.hexdigest()[:16]
