"""On what a decision about a cell was based: it is tried again once any of it changes."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from gpupod_cell.layout import Layout
from gpupod_cell.orders import Order
from gpupod_cell.walk import Stamp, stamp

LOOK_AGAIN = frozenset({"Partial", "Missing", "Mismatch", "Lost"})
"""Phases in which the operator misses files of an uploaded cell: list again, send what is missing."""


def basis_of(layout: Layout, order: Order, done: Stamp | None) -> str:
    """A digest of the order, the done file and the token, as they are now."""
    token = stamp(layout.token(order.uid))
    phase = order.state if order.state in LOOK_AGAIN else ""
    whole = f"{replace(order, state=phase)!r}|{done}|{token}"
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def repository(order: Order) -> str:
    """The repository as commit quotas are counted by."""
    return f"{order.destination.repo_type}:{order.destination.repo}"
