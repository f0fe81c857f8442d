"""ssh_config: one Host block a row, with the pod's host key pinned by pod id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpupod_operator.render.rows import Row


@dataclass(frozen=True, slots=True)
class SshPaths:
    """Paths on the reader's machine, as ssh_config takes them (`~` and `%` tokens allowed)."""

    identity_file: str = "~/.ssh/id_ed25519"
    known_hosts_file: str = "~/.ssh/gpupod_known_hosts"


DEFAULT_PATHS = SshPaths()


def ssh_config(rows: Sequence[Row], paths: SshPaths = DEFAULT_PATHS) -> str:
    """The file, for `ssh -F` or an `Include`. Empty without rows."""
    return "\n".join(host_block(row, paths) for row in rows)


def host_block(row: Row, paths: SshPaths) -> str:
    """One block; ends with a newline."""
    options = [
        ("HostName", row.host),
        ("Port", str(row.port)),
        ("User", "root"),
        ("IdentityFile", _quoted(paths.identity_file)),
        # without it an agent with many keys is refused before the right one is tried
        ("IdentitiesOnly", "yes"),
        ("UserKnownHostsFile", _quoted(paths.known_hosts_file)),
        ("GlobalKnownHostsFile", "/dev/null"),
    ]
    if row.pod_id is not None:
        # RunPod gives one address and port to different pods over time: the pod id is the identity
        options.append(("HostKeyAlias", host_key_alias(row.pod_id)))
    options += [
        ("StrictHostKeyChecking", "yes" if pinned(row) else "accept-new"),
        ("ConnectTimeout", "10"),
        ("ServerAliveInterval", "60"),
        ("ServerAliveCountMax", "3"),
    ]
    title = f"# {row.label} - {row.gpus}x {row.gpu_type}" + (f" (pod {row.pod_id})" if row.pod_id else "")
    return "\n".join((title, f"Host {row.name}", *(f"    {key} {value}" for key, value in options))) + "\n"


def host_key_alias(pod_id: str) -> str:
    """The name under which a pod's key stands in known_hosts."""
    return f"gpupod-{pod_id}"


def pinned(row: Row) -> bool:
    """Whether known_hosts has a line for the row."""
    return row.host_key is not None and row.pod_id is not None


def _quoted(path: str) -> str:
    return f'"{path}"' if " " in path else path
