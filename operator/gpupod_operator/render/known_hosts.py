"""known_hosts: the key that each pod showed first, by pod id. A new start of a pod has a new key and a new line."""

from __future__ import annotations

from collections.abc import Sequence

from gpupod_operator.render.rows import Row
from gpupod_operator.render.ssh_config import host_key_alias


def known_hosts(rows: Sequence[Row]) -> str:
    """The file; empty while no key is pinned."""
    return "".join(host_line(row) for row in rows)


def host_line(row: Row) -> str:
    """`alias type key` with a newline, or nothing while no key of the pod is known."""
    if row.host_key is None or row.pod_id is None:
        return ""
    # key type and key only: a comment in the pod's key file is the pod's text, not ours
    kind, key = row.host_key.split()[:2]
    return f"{host_key_alias(row.pod_id)} {kind} {key}\n"
