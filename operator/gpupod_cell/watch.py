"""`watch`: become the one loop on this pod, and run it until a newer tree or a stop file says otherwise."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

from gpupod_cell.layout import Layout, read_json
from gpupod_cell.locks import Lock
from gpupod_cell.loop import Loop
from gpupod_cell.process import start_of
from gpupod_cell.record import State
from gpupod_cell.settings import hub_endpoint

log = logging.getLogger("gpupod_cell")

WAIT_FOR_LOCK_SECONDS = 1.0
NEXT_LOCK_FD = "GPUPOD_NEXT_LOCK_FD"
"""Set by the bootstrap: the descriptor that holds `lock.next` across its exec."""


def tree_hash() -> str:
    """The hash of the tree this code was started from; VERSION lies beside the package."""
    try:
        return (Path(__file__).resolve().parent.parent / "VERSION").read_text().strip()
    except FileNotFoundError:
        return "unversioned"


def utc_now() -> datetime:
    """The time of this pod, aware."""
    return datetime.now(timezone.utc)


def prune_trees() -> None:
    """Remove the trees of earlier agents. Only the holder of the lock may: an older loop still runs from its own."""
    mine = Path(__file__).resolve().parent.parent
    if mine.parent.name != "trees":
        return
    for other in mine.parent.iterdir():
        # A newer one is on its way to replace this one.
        if other.stat().st_mtime_ns < mine.stat().st_mtime_ns:
            shutil.rmtree(other, ignore_errors=True)


def watch(layout: Layout, *, every: float, until_idle: bool = False) -> int:
    """Run the loop; the exit code. A second instance of the same tree ends at once, one of a newer tree waits."""
    mine = tree_hash()
    lock = _become_the_loop(layout, mine)
    if lock is None:
        return 0
    state = State(
        layout,
        {
            "pid": os.getpid(),
            "procStart": start_of(os.getpid()),
            "treeHash": mine,
            "podId": None,
            "attempt": None,
            "hubEndpoint": hub_endpoint(layout),
            "timer": None,
        },
    )
    state.load()
    prune_trees()
    loop = Loop(layout, state, now=utc_now, monotonic=time.monotonic, tree_hash=mine)
    log.info("loop started: pid %d, tree %s", os.getpid(), mine)
    pause = threading.Event()
    try:
        while loop.tick():
            if loop.upload is not None:
                # Wakes as soon as the upload ends; until then done files and the heartbeat are looked at as usual.
                loop.upload.ended(timeout=every)
            elif until_idle and loop.idle:
                break
            else:
                pause.wait(every)
        log.info("loop ends")
    finally:
        if loop.upload is not None:
            loop.upload.kill()
        lock.release()
    return 0


def _become_the_loop(layout: Layout, mine: str) -> Lock | None:
    nexts = Lock(layout.next_lock, layout.secrets / "lock.next")
    held = os.environ.pop(NEXT_LOCK_FD, None)
    if held is not None:
        nexts.adopt(int(held))
    elif not nexts.acquire():
        log.info("another process waits to become the loop already")
        return None
    lock = Lock(layout.lock, layout.secrets / "lock")
    pause = threading.Event()
    try:
        while not lock.acquire():
            running = (read_json(layout.state) or {}).get("agent", {})
            if running.get("treeHash") == mine and _alive(running):
                log.info("this tree runs already as pid %s", running.get("pid"))
                return None
            if layout.version.exists() and layout.version.read_text().strip() != mine:
                log.info("a newer tree was put here while this one waited")
                return None
            pause.wait(WAIT_FOR_LOCK_SECONDS)
    except ValueError:
        log.exception("state.json cannot be read")
        return None
    finally:
        nexts.release()
    return lock


def _alive(agent: dict[str, object]) -> bool:
    pid = agent.get("pid")
    return isinstance(pid, int) and start_of(pid) == agent.get("procStart")
