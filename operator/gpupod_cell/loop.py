"""The loop: looks for done files, uploads one finished cell after another, and keeps the state file."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gpupod_cell import schedule
from gpupod_cell.answers import scrub
from gpupod_cell.basis import LOOK_AGAIN, basis_of, repository
from gpupod_cell.child import Upload
from gpupod_cell.deadman import StopTimer
from gpupod_cell.launches import ended_since
from gpupod_cell.layout import Layout, write_atomically
from gpupod_cell.once import ready
from gpupod_cell.orders import BadOrders, Order, Orders, parse_orders, read_orders
from gpupod_cell.record import Cell, State
from gpupod_cell.refusal import NOTHING_TO_DO, QUOTA, TRANSPORT, Refusal
from gpupod_cell.settings import hub_endpoint
from gpupod_cell.walk import stamp

log = logging.getLogger("gpupod_cell")

AWAITED = timedelta(seconds=15)
"""After the end of a workload each look is told at once: an end of the pod may wait for it, and the pod bills."""


class Loop:
    """One agent process. `tick` does what is due now and never waits; the caller paces it."""

    def __init__(
        self,
        layout: Layout,
        state: State,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        tree_hash: str,
        start: Callable[..., Upload] = Upload,
        timer: StopTimer | None = None,
    ) -> None:
        self._layout = layout
        self._state = state
        self._now = now
        self._monotonic = monotonic
        self._tree_hash = tree_hash
        self._start = start
        self._timer = timer or StopTimer(layout, now=now, monotonic=monotonic)
        self._orders: Orders | None = None
        self._read: tuple[int, int, int] | None = None
        self._holds: dict[str, tuple[datetime, dict[str, Any]]] = {}
        self.upload: Upload | None = None

    @property
    def idle(self) -> bool:
        """Nothing is being uploaded, and no finished cell waits."""
        return self.upload is None and not any(
            cell.state in ("Produced", "Failed") or (cell.state == "Blocked" and cell.retry_at is not None)
            for cell in self._state.cells.values()
        )

    def tick(self) -> bool:
        """One look. False: a newer tree or a stop file is there and no commit is in hand, so end."""
        began = self._now()
        self._take_orders()
        self._collect()
        leaving = self._layout.wants_end(self._tree_hash)
        if self._orders is not None:
            for order in self._orders.cells:
                self._observe(order)
            if self.upload is None and not leaving:
                self._begin()
        self._state.identity["timer"] = self._timer.look(self._orders, self._state.cells)
        self._state.write(began, awaited=ended_since(self._layout.root, began - AWAITED))
        return not (leaving and self.upload is None)

    def _take_orders(self) -> None:
        try:
            info = self._layout.cells.stat()
        except FileNotFoundError:
            return
        seen = (info.st_mtime_ns, info.st_ino, info.st_size)
        if seen == self._read:
            return
        self._read = seen
        try:
            data = self._layout.cells.read_bytes()
            orders = parse_orders(data)
        except BadOrders as broken:
            # The orders accepted before stay in force: a broken file must not stop a working agent.
            self._state.problem = str(broken)
            log.error("%s", broken)  # noqa: TRY400 - the message says it all; a traceback would not help on the pod
            self._orders = self._orders or self._accepted_before()
            return
        write_atomically(self._layout.accepted, data)
        # The stop timer counts from when the orders came, also after a restart of the agent.
        os.utime(self._layout.accepted, ns=(info.st_mtime_ns, info.st_mtime_ns))
        self._orders = orders
        self._state.problem = "; ".join(orders.unusable)[:1000] or None
        self._state.identity.update(podId=orders.pod_id, attempt=orders.attempt)
        known = {order.uid for order in orders.cells}
        self._state.cells = {uid: cell for uid, cell in self._state.cells.items() if uid in known}
        log.info("orders: %d cells, attempt %s", len(orders.cells), orders.attempt)

    def _accepted_before(self) -> Orders | None:
        try:
            return read_orders(self._layout.accepted)
        except BadOrders:
            return None

    def _observe(self, order: Order) -> None:
        cell = self._state.cells.setdefault(order.uid, Cell(order.name))
        if self.upload is not None and self.upload.order.uid == order.uid:
            return
        if order.settled:
            cell.state, cell.error, cell.retry_at = "Uploaded", None, None
            cell.commit = cell.commit or ({"oid": order.commit, "at": None} if order.commit else None)
            return
        done = stamp(Path(order.done_file))
        basis = basis_of(self._layout, order, done)
        if done is None:
            produces = any(os.path.lexists(artifact.path) for artifact in order.artifacts)
            cell.state, cell.done_seen = ("Producing" if produces else "Pending"), False
            cell.error, cell.retry_at = None, None
            return
        same_done = cell.done == {"mtimeNs": done.mtime_ns, "size": done.size}
        if cell.state == "Uploaded" and same_done and (order.state not in LOOK_AGAIN or cell.basis == basis):
            cell.basis = basis
            return
        if cell.basis != basis:
            cell.basis, cell.failures = basis, 0
            if not (cell.error and cell.error.get("exit") == QUOTA):
                cell.retry_at = None
        if cell.retry_at is None or cell.state not in ("Producing", "Blocked", "Failed", "Produced"):
            cell.state, cell.done_seen = "Produced", True

    def _begin(self) -> None:
        if self._orders is None:
            return
        now = self._now()
        self._holds = {key: hold for key, hold in self._holds.items() if hold[0] > now}
        due: list[tuple[int, Order, Cell]] = []
        for order in self._orders.cells:
            cell = self._state.cells[order.uid]
            if order.settled or cell.state in ("Uploaded", "Pending") or (cell.retry_at and cell.retry_at > now):
                continue
            done = stamp(Path(order.done_file))
            if done is None:
                continue
            hold = self._holds.get(repository(order)) or self._holds.get(schedule.HUB_WIDE)
            if hold is not None:
                self._wait(cell, hold)
            else:
                due.append((done.mtime_ns, order, cell))
        # The oldest first: what has been finished longest has been at risk longest.
        for _, order, cell in sorted(due, key=lambda item: (item[0], item[1].uid)):
            try:
                ready(order)
            except Refusal as refused:
                self._refuse(order, cell, refused)
                continue
            cell.state, cell.done_seen, cell.retry_at = "Uploading", True, None
            self._state.identity["hubEndpoint"] = hub_endpoint(self._layout)
            self.upload = self._start(self._layout, order, no_xet=cell.no_xet, began=self._monotonic())
            how = "without Xet" if cell.no_xet else "with Xet if there"
            log.info("cell %s: upload started (pid %d, %s)", order.name, self.upload.pid, how)
            return

    def _collect(self) -> None:
        upload = self.upload
        if upload is None:
            return
        hung = False
        if not upload.ended():
            if upload.quiet_for(self._monotonic()) <= upload.order.progress_deadline:
                return
            hung = True
            upload.kill()
        self.upload = None
        code, receipt, tail = upload.result()
        cell = self._state.cells.get(upload.order.uid)
        if cell is None:
            log.info("cell %s was taken off the orders while it was uploaded (exit %d)", upload.order.name, code)
            return
        cell.state = "Produced"
        if receipt is not None and code == 0:
            self._landed(upload.order, cell, receipt)
        elif hung:
            seconds = upload.order.progress_deadline
            what = "also without Xet" if upload.no_xet else "repeated without Xet"
            refused = Refusal("NoProgress", f"nothing moved for {seconds:.0f} s; killed, {what}", TRANSPORT)
            self._refuse(upload.order, cell, refused)
            if not upload.no_xet:
                cell.no_xet, cell.retry_at = True, None
        elif receipt is not None and "error" in receipt:
            error = receipt["error"]
            self._refuse(
                upload.order,
                cell,
                Refusal(error["class"], error["message"], int(receipt["exit"]), retry_after=receipt["retryAfter"]),
            )
        else:
            text = f"the upload ended with {code} and no receipt: {scrub(tail[-400:])}"
            self._refuse(upload.order, cell, Refusal("UploadDied", text, TRANSPORT))

    def _landed(self, order: Order, cell: Cell, receipt: dict[str, Any]) -> None:
        commit = dict(receipt["commit"])
        commit["at"] = commit.get("at") or self._now().isoformat(timespec="seconds").replace("+00:00", "Z")
        cell.state, cell.error, cell.retry_at, cell.failures = "Uploaded", None, None, 0
        cell.manifest, cell.done, cell.no_xet = receipt["manifest"], receipt["done"], False
        cell.commit = commit if commit["oid"] else None
        how = "adopted" if receipt["adopted"] else "new"
        log.info("cell %s: on the Hub at %s (%s)", order.name, commit["oid"], how)

    def _refuse(self, order: Order, cell: Cell, refused: Refusal) -> None:
        now = self._now()
        cell.error = {"class": refused.kind, "message": refused.message, "exit": refused.exit_code}
        if refused.exit_code == NOTHING_TO_DO:
            # A stale done file does not count: the cell is still being produced.
            cell.state, cell.done_seen = "Producing", False
            cell.retry_at = now + timedelta(seconds=refused.retry_after or 0) if refused.retry_after else None
            return
        cell.failures += 1
        wait = schedule.wait_after(refused.exit_code, refused.retry_after, cell.failures, random.random())  # noqa: S311
        cell.state = schedule.state_after(refused.exit_code, wait, cell.failures)
        cell.retry_at = now + timedelta(seconds=wait)
        reach = schedule.reach_of(refused.exit_code, refused.kind)
        if reach != schedule.CELL_WIDE:
            key = schedule.HUB_WIDE if reach == schedule.HUB_WIDE else repository(order)
            self._holds[key] = (cell.retry_at, dict(cell.error))
        log.warning(
            "cell %s: %s (exit %d, next try in %.0f s): %s",
            order.name,
            refused.kind,
            refused.exit_code,
            wait,
            refused.message,
        )

    def _wait(self, cell: Cell, hold: tuple[datetime, dict[str, Any]]) -> None:
        """A quota that another cell ran into holds this one as well."""
        seconds = (hold[0] - self._now()).total_seconds()
        cell.state = schedule.state_after(QUOTA, seconds, 1)
        cell.error, cell.retry_at = dict(hold[1]), hold[0]
