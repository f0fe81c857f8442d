"""Rented pods: a directory, processes in namespaces of their own, and an SSH server on a loopback address."""

from gpupod_rehearsal.hosts.namespace import NamespaceHost
from gpupod_rehearsal.hosts.null import NullHost
from gpupod_rehearsal.hosts.protocol import (
    Endpoint,
    HostError,
    NamespacesUnavailable,
    PodHost,
    PodLaunch,
    VolumeMount,
)

__all__ = [
    "Endpoint",
    "HostError",
    "NamespaceHost",
    "NamespacesUnavailable",
    "NullHost",
    "PodHost",
    "PodLaunch",
    "VolumeMount",
]
