"""A real kube-apiserver with etcd, built from pinned Go modules, for rehearsals and tests."""

from gpupod_rehearsal.controlplane.access import Access
from gpupod_rehearsal.controlplane.binaries import ensure_programs
from gpupod_rehearsal.controlplane.build import BuildFailed
from gpupod_rehearsal.controlplane.plane import ControlPlane, Launch
from gpupod_rehearsal.controlplane.process import Abandoned, Server, ServerFailed
from gpupod_rehearsal.controlplane.progress import ProgressLine
from gpupod_rehearsal.controlplane.toolchain import NoToolchain

__all__ = [
    "Abandoned",
    "Access",
    "BuildFailed",
    "ControlPlane",
    "Launch",
    "NoToolchain",
    "ProgressLine",
    "Server",
    "ServerFailed",
    "ensure_programs",
]
