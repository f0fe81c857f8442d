"""The command line of the agent."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gpupod_cell import refusal
from gpupod_cell.layout import Layout, encode
from gpupod_cell.locks import Lock
from gpupod_cell.manifest import Manifest, take
from gpupod_cell.once import Run, ready, upload
from gpupod_cell.orders import BadOrders, Order, Orders, read_orders
from gpupod_cell.process import die_with_parent
from gpupod_cell.progress import Marks
from gpupod_cell.refusal import Refusal
from gpupod_cell.settings import hub_endpoint, token_of, upload_environment
from gpupod_cell.status import manifest_lines, status_lines, walk_lines
from gpupod_cell.watch import utc_now, watch

ABOUT = """\
The gpupod cell agent takes finished sweep cells from this pod to the Hugging Face Hub.

It reads /workspace/.gpupod/cells.json (written by the gpupod operator: which cells, their done files, artifacts and
destinations). A cell counts as finished when its done file exists and is newer than every artifact file. Its files are
hashed into a manifest and sent, manifest included, in ONE commit. Nothing on this pod or on the Hub is ever deleted,
and foreign content at the destination is never overwritten.

Where the operator ordered a stop timer, the agent stops its own pod at the deadline, with the key that RunPod gave to
this pod, once nothing on it is unsaved. A living operator does so earlier by itself.

To look into a problem:
  python -m gpupod_cell status                 what the agent is doing, and why a cell waits
  python -m gpupod_cell manifest --cell NAME   what would be uploaded (sends nothing)
  python -m gpupod_cell once --cell NAME       upload one cell now; prints a receipt (JSON, one line)
  tail /workspace/.gpupod/agent/agent.log      what happened
  touch /workspace/.gpupod/agent/stop          let the loop end after the commit in hand
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr, force=True
    )
    layout = Layout.find(given.root)
    try:
        return int(given.run(layout, given))
    except BadOrders as problem:
        print(f"gpupod_cell: {problem}", file=sys.stderr)
        return refusal.BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in refusal.MEANING.items())
    parser = argparse.ArgumentParser(
        prog="python -m gpupod_cell",
        description=ABOUT,
        epilog=f"exit codes of `once`:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--root", help="the .gpupod folder (default: GPUPOD_ROOT, else /workspace/.gpupod)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    loop = commands.add_parser("watch", help="the loop: upload every cell when its done file appears")
    loop.add_argument("--every", type=float, default=3.0, metavar="SECONDS", help="pause between looks (default 3)")
    loop.add_argument("--until-idle", action="store_true", help="end when no finished cell waits any more")
    loop.set_defaults(run=_watch)

    once = commands.add_parser("once", help="upload one cell and print the receipt")
    _names_a_cell(once)
    once.add_argument("--no-xet", action="store_true", help="use classic LFS uploads")
    once.add_argument("--orders", help=argparse.SUPPRESS)
    once.add_argument("--marks", help=argparse.SUPPRESS)
    once.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    once.set_defaults(run=_once)

    commands.add_parser("status", help="print what the agent knows").set_defaults(run=_status)

    dry = commands.add_parser("manifest", help="walk and hash one cell, send nothing")
    _names_a_cell(dry)
    dry.set_defaults(run=_manifest)
    return parser


def _names_a_cell(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--cell", metavar="NAME", help="the cell's name (namespace/name where names repeat)")
    which.add_argument("--uid", help="the cell's uid")


def _watch(layout: Layout, given: argparse.Namespace) -> int:
    return watch(layout, every=given.every, until_idle=given.until_idle)


def _once(layout: Layout, given: argparse.Namespace) -> int:
    if given.parent is not None:
        die_with_parent(given.parent)
        # Uploading must not slow down the workload that pays for the pod.
        os.nice(10)
    orders, order = _chosen(layout, given)
    os.environ.update(upload_environment(layout, no_xet=given.no_xet, base=os.environ))
    lock = Lock(layout.upload_lock, layout.secrets / "lock.upload")
    marks = Marks(Path(given.marks) if given.marks else None)
    try:
        run = _upload(layout, orders, order, marks, lock)
    finally:
        marks.close()
        lock.release()
    sys.stdout.write(encode(run.receipt).decode() + "\n")
    sys.stdout.flush()
    return run.exit_code


def _upload(layout: Layout, orders: Orders, order: Order, marks: Marks, lock: Lock) -> Run:
    # huggingface_hub reads its settings when it is imported, so this import waits for the environment above.
    from gpupod_cell.hub import Hub, description_of  # noqa: PLC0415

    def connect() -> Hub:
        if not lock.acquire():
            raise Refusal("UploadInProgress", "another upload runs on this pod", refusal.CONFLICT, retry_after=10)
        return Hub(order.destination, token_of(layout, order), hub_endpoint(layout))

    def describe(taken: Manifest) -> str:
        return description_of(taken)

    return upload(layout, orders, order, connect, now=utc_now, describe=describe, progress=marks.hashed)


def _status(layout: Layout, _: argparse.Namespace) -> int:
    for line in status_lines(layout):
        print(line)
    return 0


def _manifest(layout: Layout, given: argparse.Namespace) -> int:
    orders, order = _chosen(layout, given)
    for line in walk_lines(order):
        print(line)
    try:
        taken = take(order, ready(order), pod_id=orders.pod_id, attempt=orders.attempt, now=utc_now)
    except Refusal as refused:
        print(f"{refused.kind}: {refused.message}")
        return refused.exit_code
    for line in manifest_lines(taken):
        print(line)
    return 0


def _chosen(layout: Layout, given: argparse.Namespace) -> tuple[Orders, Order]:
    orders = read_orders(Path(getattr(given, "orders", None) or layout.cells))
    if orders is None:
        raise BadOrders(f"{layout.cells} does not exist: the operator has not ordered anything here")
    if given.uid:
        found = [order for order in orders.cells if order.uid == given.uid]
    else:
        found = [order for order in orders.cells if given.cell in (order.name, f"{order.namespace}/{order.name}")]
    if len(found) == 1:
        return orders, found[0]
    names = ", ".join(sorted(f"{order.namespace}/{order.name}" for order in orders.cells)[:20]) or "none"
    raise BadOrders(f"{len(found)} cells are called {given.uid or given.cell!r}; known are: {names}")


if __name__ == "__main__":
    sys.exit(main())
