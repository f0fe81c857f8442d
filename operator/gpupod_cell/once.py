"""One run for one cell: walk, hash, land, look again, and say what happened in one receipt."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpupod_cell import FORMAT, refusal
from gpupod_cell.keeping import kept_or_taken
from gpupod_cell.landing import Destination, Landed, land
from gpupod_cell.layout import Layout
from gpupod_cell.manifest import Manifest, unchanged
from gpupod_cell.orders import Order, Orders
from gpupod_cell.refusal import BAD_INPUT, NOTHING_TO_DO, Refusal
from gpupod_cell.walk import Walk, walk

ROUNDS = 3
"""How often a cell that changes under the upload is taken again before it is refused."""

STALE_WAIT = 30.0


@dataclass(frozen=True)
class Run:
    """The outcome for machines: exit code and receipt."""

    exit_code: int
    receipt: dict[str, Any]


def ready(order: Order) -> Walk:
    """The walk of a cell that can be uploaded. Raises Refusal: not finished, stale, or something cannot be taken."""
    seen = walk(order)
    if seen.done is None:
        raise Refusal("NotFinished", f"{order.done_file} does not exist yet", NOTHING_TO_DO)
    if seen.stale is not None:
        raise Refusal(
            "DoneFileStale",
            f"{order.done_file} is older than {seen.stale}: it does not count until it is written again, last",
            NOTHING_TO_DO,
            retry_after=STALE_WAIT,
        )
    if seen.problems:
        first = seen.problems[0]
        more = f" (and {len(seen.problems) - 1} more)" if len(seen.problems) > 1 else ""
        raise Refusal(first.kind, first.message + more, BAD_INPUT, retry_after=60)
    return seen


def upload(
    layout: Layout,
    orders: Orders,
    order: Order,
    connect: Callable[[], Destination],
    *,
    now: Callable[[], datetime],
    describe: Callable[[Manifest], str],
    progress: Callable[[int], None] = lambda _: None,
) -> Run:
    """Take the cell to the Hub. Never raises Refusal: it is in the receipt."""
    started = time.monotonic()
    try:
        if order.settled:
            raise Refusal("AlreadyVerified", "the operator has it on the Hub already", NOTHING_TO_DO)
        landed = _land_whole(layout, orders, order, connect, now, describe, progress)
    except Refusal as refused:
        return Run(refused.exit_code, _refused(order, refused, time.monotonic() - started))
    return Run(refusal.LANDED, _landed(order, landed, time.monotonic() - started))


def _land_whole(
    layout: Layout,
    orders: Orders,
    order: Order,
    connect: Callable[[], Destination],
    now: Callable[[], datetime],
    describe: Callable[[Manifest], str],
    progress: Callable[[int], None],
) -> Landed:
    hub: Destination | None = None
    for _ in range(ROUNDS):
        seen = ready(order)
        taken = kept_or_taken(
            layout, order, seen, pod_id=orders.pod_id, attempt=orders.attempt, now=now, progress=progress
        )
        hub = hub or connect()
        landed = land(hub, seen, taken, title=f"cell {order.name}", description=describe(taken))
        # A file that changed while it was sent is not what the manifest says, whatever the Hub answered.
        if unchanged(seen):
            return landed
    raise Refusal("KeepsChanging", "files change while they are uploaded; write the done file last", BAD_INPUT)


def _landed(order: Order, landed: Landed, seconds: float) -> dict[str, Any]:
    return {
        **_head(order, seconds),
        "result": "Landed",
        "exit": refusal.LANDED,
        "adopted": landed.adopted,
        "commit": {"oid": landed.oid, "at": landed.at},
        "manifest": {
            "digest": landed.manifest.digest,
            "files": len(landed.manifest.files),
            "bytes": landed.manifest.size,
            "takenAt": landed.manifest.taken_at,
        },
        "done": {"mtimeNs": landed.manifest.done_mtime_ns, "size": landed.manifest.done_size},
        "files": [
            {"path": f.path, "size": f.size, "sha256": f.sha256, "gitSha1": f.git_sha1} for f in landed.manifest.files
        ],
    }


def _refused(order: Order, refused: Refusal, seconds: float) -> dict[str, Any]:
    return {
        **_head(order, seconds),
        "result": "Refused",
        "exit": refused.exit_code,
        "error": {"class": refused.kind, "message": refused.message},
        "retryAfter": refused.retry_after,
    }


def _head(order: Order, seconds: float) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "cell": {"uid": order.uid, "name": order.name},
        "seconds": round(seconds, 3),
    }
