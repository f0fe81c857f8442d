"""`status` and `manifest`: what a person on the pod wants to see."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gpupod_cell.layout import Layout, read_json
from gpupod_cell.manifest import Manifest
from gpupod_cell.orders import Order
from gpupod_cell.process import start_of
from gpupod_cell.walk import walk


def status_lines(layout: Layout) -> Iterator[str]:
    """The state file, readable."""
    value = read_json(layout.state)
    if value is None:
        yield f"no agent has run here: {layout.state} does not exist"
        return
    agent = value["agent"]
    pid = agent.get("pid")
    alive = isinstance(pid, int) and start_of(pid) == agent.get("procStart")
    yield f"agent    {'running' if alive else 'NOT running'} (pid {pid}, tree {agent.get('treeHash')})"
    yield f"pod      {agent.get('podId')}, attempt {agent.get('attempt')}; heartbeat {agent.get('heartbeat')}"
    yield f"hub      {agent.get('hubEndpoint') or 'https://huggingface.co'}"
    timer = agent.get("timer")
    if timer:
        why = f": {timer['message']}" if timer["message"] else ""
        yield f"timer    {timer['state']}, deadline {timer['deadline']}{why}"
    if agent.get("problem"):
        yield f"PROBLEM  {agent['problem']}"
    for cell in sorted(value["cells"].values(), key=lambda entry: str(entry["name"])):
        commit = cell.get("commit") or {}
        yield f"{cell['name']:<24} {cell['state']:<10} {commit.get('oid') or '-'}"
        error = cell.get("error")
        if error:
            again = f"; next try {cell['retryAt']}" if cell.get("retryAt") else ""
            yield f"{'':<24} {error['class']} (exit {error['exit']}): {error['message']}{again}"


def walk_lines(order: Order) -> Iterator[str]:
    """What would be taken of a cell, and what could not."""
    seen = walk(order)
    yield f"done file {order.done_file}: {'there' if seen.done else 'not there yet'}"
    if seen.stale:
        yield f"  but older than {seen.stale}: it does not count"
    for problem in seen.problems:
        yield f"PROBLEM {problem.kind}: {problem.message}"
    target = order.destination
    yield f"{len(seen.files)} files to {target.repo_type} {target.repo}@{target.revision}:{target.path}/"


def manifest_lines(taken: Manifest) -> Iterator[str]:
    """The manifest, indented, and its digest."""
    yield json.dumps(json.loads(taken.data), indent=2, sort_keys=True, ensure_ascii=False)
    yield f"digest {taken.digest}, {len(taken.files)} files, {taken.size} bytes"
