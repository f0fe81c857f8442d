"""The manifest of a cell is kept beside the agent, so that a repeated upload claims the same digest.

Without that, each run after an unclear answer would take a new manifest, and a commit that had landed meanwhile would
not be recognised by its trailer. It also spares reading all files again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

from gpupod_cell.layout import Layout, encode, read_json, write_atomically
from gpupod_cell.manifest import Manifest, read, stamps, take
from gpupod_cell.orders import Order
from gpupod_cell.walk import Walk


def kept_or_taken(
    layout: Layout,
    order: Order,
    seen: Walk,
    *,
    pod_id: str,
    attempt: str,
    now: Callable[[], datetime],
    progress: Callable[[int], None] = lambda _: None,
) -> Manifest:
    """The kept manifest when nothing on disk has changed since and pod and attempt are the same, else a new one."""
    identity = {
        "stamps": stamps(seen),
        "done": [seen.done.size, seen.done.mtime_ns] if seen.done else None,
        "doneFile": order.done_file,
        "podId": pod_id,
        "attempt": attempt,
        "cell": [order.uid, order.name, order.namespace, order.sweep],
        "artifacts": [[artifact.name, artifact.path] for artifact in order.artifacts],
    }
    path = layout.kept(order.uid)
    try:
        kept = read_json(path)
        # Through JSON once, so that both sides are compared in the same types.
        if kept is not None and kept.get("identity") == json.loads(encode(identity)):
            return read(str(kept["manifest"]).encode())
    except (ValueError, KeyError):
        # A damaged keep-sake costs one more reading of the files, nothing else.
        path.unlink(missing_ok=True)
    manifest = take(order, seen, pod_id=pod_id, attempt=attempt, now=now, progress=progress)
    write_atomically(path, encode({"identity": identity, "manifest": manifest.data.decode()}))
    return manifest
