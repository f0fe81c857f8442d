"""The stop timer at work: waits for its deadline, ends the workload, sees everything saved, and stops its own pod."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from gpupod_cell import launches
from gpupod_cell.layout import Layout
from gpupod_cell.orders import Orders
from gpupod_cell.record import Cell, stamp_of
from gpupod_cell.settings import container_variable, runpod_endpoint
from gpupod_cell.stopping import stop_pod
from gpupod_cell.timer import Next, Timer, next_step

log = logging.getLogger("gpupod_cell")

DRAIN_SECONDS = 60.0
"""Between SIGTERM and SIGKILL, as the operator's own drain has it."""
AGAIN_SECONDS = 300.0
"""A stop that was taken and did not come is ordered again."""
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
QUIET_LOOKS = 2
"""Looks in a row without any process of the workload: what it wrote last is seen by the second of them."""


class StopTimer:
    """One per agent process. `look` does what is due now; it waits for nothing but RunPod's answer."""

    def __init__(
        self,
        layout: Layout,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        stop: Callable[[str, str, str], str | None] = stop_pod,
        variable: Callable[[str], str] = container_variable,
    ) -> None:
        self._layout = layout
        self._now = now
        self._monotonic = monotonic
        self._stop = stop
        self._variable = variable
        self._asked_to_end: dict[launches.Launch, float] = {}
        self._quiet = 0
        self._failures = 0
        self._again = 0.0
        self._said: tuple[str, str | None] | None = None

    def look(self, orders: Orders | None, cells: Mapping[str, Cell]) -> dict[str, Any] | None:
        """What the state file says of the timer; None while none is ordered."""
        timer = orders.timer if orders is not None else None
        if orders is None or timer is None:
            self._said = None
            return None
        state, why = self._work(orders, timer, cells)
        if (state, why) != self._said:
            self._said = (state, why)
            log.info("stop timer: %s%s", state, f": {why}" if why else "")
        return {"deadline": stamp_of(timer.deadline), "state": state, "message": why}

    def _work(self, orders: Orders, timer: Timer, cells: Mapping[str, Cell]) -> tuple[str, str | None]:
        me, key, endpoint = (
            self._variable("RUNPOD_POD_ID"),
            self._variable("RUNPOD_API_KEY"),
            runpod_endpoint(self._layout),
        )
        if me != orders.pod_id:
            return "Refused", f"these orders are for pod {orders.pod_id}, and this is {me or 'no pod of RunPod'}"
        if not key:
            return "Refused", "RUNPOD_API_KEY is not in the pod's environment"
        if not endpoint:
            return "Refused", "the operator named no address of RunPod's API"
        arrived = datetime.fromtimestamp(os.stat(self._layout.accepted).st_mtime, timezone.utc)  # noqa: PTH116
        if self._now() < timer.due(arrived):
            self._quiet, self._again, self._failures = 0, 0.0, 0
            self._asked_to_end.clear()
            return "Armed", None
        launch = launches.launch_of(self._layout.root, orders.attempt, timer.pod_started_at)
        working = launch is not None and bool(launches.members(launch))
        self._quiet = 0 if working else self._quiet + 1
        step, why = next_step(timer, orders.cells, cells, working=working)
        if step is Next.DRAIN and launch is not None:
            return self._drain(launch) or (step.value, why)
        if step is not Next.STOP:
            return step.value, why
        if not timer.disposable and self._quiet < QUIET_LOOKS:
            return Next.SAVE.value, "the workload has ended; one more look at what it left"
        return self._order(endpoint, orders.pod_id, key)

    def _drain(self, launch: launches.Launch) -> tuple[str, str] | None:
        at = self._monotonic()
        asked = self._asked_to_end.get(launch)
        try:
            if asked is None:
                self._asked_to_end[launch] = at
                launches.end(launch, kill=False)
            elif at - asked >= DRAIN_SECONDS:
                launches.end(launch, kill=True)
        except PermissionError as refused:
            return Next.HOLD.value, f"the workload (pid {launch.pid}) cannot be ended: {refused}"
        return None

    def _order(self, endpoint: str, pod_id: str, key: str) -> tuple[str, str | None]:
        at = self._monotonic()
        if at < self._again:
            return self._said if self._said and self._said[0] == Next.STOP.value else (Next.STOP.value, None)
        problem = self._stop(endpoint, pod_id, key)
        if problem is None:
            self._failures, self._again = 0, at + AGAIN_SECONDS
            return Next.STOP.value, "RunPod was told to stop this pod"
        self._again = at + min(FIRST_PAUSE * 2 ** min(self._failures, 8), LONGEST_PAUSE)
        self._failures += 1
        return Next.STOP.value, problem
