"""What a session on the pod shows: reachability, workload, agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gpupod_operator.core.artifacts import AgentReading


class SshClass(StrEnum):
    """Classes of an SSH attempt. Only OK is a healthy session; none of the others says that anything is dead."""

    OK = "Ok"
    NAME_RESOLUTION = "NameResolution"
    REFUSED = "Refused"
    TIMEOUT = "Timeout"
    HOST_KEY = "HostKey"
    AUTH_DENIED = "AuthDenied"
    DROPPED = "Dropped"
    NO_KEY = "NoKey"
    """Nothing was tried: our own key cannot be had. It says nothing about the pod, neither up nor down."""
    OTHER = "Other"


@dataclass(frozen=True, slots=True)
class ShellTarget:
    """Where and whom to log in to. `host_key` is the pinned key line (`ssh-ed25519 AAAA...`) or None on first use."""

    pod_id: str
    host: str
    port: int
    host_key: str | None
    user: str = "root"


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """A launch recorded on the pod under `/workspace/.gpupod/<attempt>/`.

    `alive` is None when it could not be read: never taken for dead. A pid is alive only if its recorded /proc start
    time matches. `exit_code` is None while no exit record exists.
    """

    launch_id: str
    attempt: str
    pid: int | None
    alive: bool | None
    exit_code: int | None
    started_at: datetime | None = None
    pod_started_at: str | None = None
    pgid: int | None = None


@dataclass(frozen=True, slots=True)
class ShellReading:
    """One visit over SSH. With `ssh` other than OK the rest is None: unknown."""

    ssh: SshClass
    message: str
    at: datetime
    host_key: str | None = None
    tcp_open: bool | None = None
    launches: tuple[LaunchRecord, ...] | None = None
    agent: AgentReading | None = None
