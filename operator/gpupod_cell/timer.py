"""The stop timer: what the operator ordered, and what follows from what lies on the pod. Pure.

An operator that lives ends the pod itself, earlier; this is for the pod that nobody looks after any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from gpupod_cell.record import Cell, time_of

if TYPE_CHECKING:
    from gpupod_cell.orders import Order


@dataclass(frozen=True)
class Timer:
    """`deadline` and `written_at` by the operator's clock. `disposable`: nothing on this pod need be saved.

    `ours`: only what the operator launched writes cells here, so that may be ended first, if it was launched in the
    start `pod_started_at`. `keeps`: uids of cells whose every path lies on a volume that outlives a stop. `unjudged`:
    cells of this pod that are not in these orders.
    """

    deadline: datetime
    written_at: datetime
    ours: bool
    disposable: bool
    keeps: frozenset[str]
    unjudged: tuple[str, ...]
    pod_started_at: str | None

    def due(self, arrived: datetime) -> datetime:
        """The deadline by this pod's clock, which may be wrong: `arrived` is when it says that the orders came."""
        return arrived + (self.deadline - self.written_at)


class Next(Enum):
    """What a timer that is due has to do."""

    HOLD = "Held"
    DRAIN = "Draining"
    SAVE = "Saving"
    STOP = "Stopping"


def parse_timer(value: Mapping[str, Any] | None) -> Timer | None:
    """The order's `timer`. Raises KeyError, TypeError, ValueError."""
    if value is None:
        return None
    deadline, written = time_of(str(value["deadline"])), time_of(str(value["writtenAt"]))
    if deadline.tzinfo is None or written.tzinfo is None or deadline - written > timedelta(days=3650):
        raise ValueError("deadline and writtenAt have to be times with a zone, less than ten years apart")
    return Timer(
        deadline,
        written,
        ours=value.get("ours") is True,
        disposable=value.get("disposable") is True,
        keeps=frozenset(str(uid) for uid in value.get("keeps") or ()),
        unjudged=tuple(str(name) for name in value.get("unjudged") or ()),
        pod_started_at=value.get("podStartedAt"),
    )


def next_step(timer: Timer, orders: Sequence[Order], cells: Mapping[str, Cell], *, working: bool) -> tuple[Next, str]:
    """Due: may the pod be stopped, and if not, why. `working`: something that the operator launched is alive.

    As the operator's own gate has it: a result that cannot be saved keeps the pod, and keeps its workload running, too.
    """
    if timer.disposable:
        return Next.STOP, ""
    if timer.unjudged:
        return Next.HOLD, f"cell {timer.unjudged[0]} is not uploaded by this agent, so it may be unsaved"
    if not orders:
        return Next.HOLD, "no cell is ordered, so nothing is known to be saved"
    open_cells = [
        (order.name, cells.get(order.uid)) for order in orders if order.uid not in timer.keeps and not order.settled
    ]
    for name, cell in open_cells:
        if cell is not None and cell.state in ("Blocked", "Failed"):
            said = (cell.error or {}).get("message") or "no cause given"
            return Next.HOLD, f"cell {name} is finished and not on the Hub: {said}"[:500]
        if cell is not None and cell.state == "Producing" and not timer.ours:
            return Next.HOLD, f"cell {name} is being computed by something that the operator did not launch"
    if working:
        return Next.DRAIN, "the workload is ended first"
    for name, cell in open_cells:
        if cell is None or cell.state not in ("Uploaded", "Pending", "Producing"):
            return Next.SAVE, f"cell {name} is on its way to the Hub"
    return Next.STOP, ""
