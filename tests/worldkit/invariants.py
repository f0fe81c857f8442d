"""The promises, judged from what really happened: the ledger, the request log, the API objects, the logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

Rows = Iterable[Mapping[str, Any]]


def broken(ledger: Rows, requests: Rows, objects: Rows, logs: str, secrets: Iterable[str]) -> list[str]:
    """Every broken invariant in a sentence; none: they held.

    `ledger` is `/_sim/ledger`'s pods, `requests` `/_sim/requests`, `objects` the GpuPods that exist.
    """
    found = [*_two_at_once(ledger), *_outlived(ledger, objects), *_foreign(ledger, requests), *_told(logs, secrets)]
    if "a pass failed" in logs:
        found.append("a pass failed: " + logs[logs.index("a pass failed") :][:400])
    return found


def _two_at_once(ledger: Rows) -> Iterable[str]:
    """I1: at most one billed pod per GpuPod."""
    by_owner: dict[str, list[tuple[str, str, str]]] = {}
    for row in ledger:
        if row["owner"]:
            by_owner.setdefault(row["owner"], []).append((row["created"], row["deleted"] or "9999", row["podId"]))
    for owner, spans in by_owner.items():
        ordered = sorted(spans)
        for (_, ended, one), (began, _, two) in pairwise(ordered):
            if began < ended:
                yield f"I1: {one} and {two} of {owner} were billed at the same time"


def _outlived(ledger: Rows, objects: Rows) -> Iterable[str]:
    """I2: no pod with our stamp outlives its object, released ones excepted."""
    uids = {o["metadata"]["uid"] for o in objects}
    for row in ledger:
        if row["owner"] and not row["deleted"] and row["owner"].rpartition("/")[2] not in uids:
            yield f"I2: {row['podId']} of {row['owner']} is still there without its object"


def _foreign(ledger: Rows, requests: Rows) -> Iterable[str]:
    """I3: no foreign pod is ever written to."""
    strangers = {row["podId"] for row in ledger if not row["owner"]}
    for request in requests:
        if request["method"] in ("POST", "PATCH", "DELETE") and any(s in request["path"] for s in strangers):
            yield f"I3: {request['method']} {request['path']} on a foreign pod"


def _told(logs: str, secrets: Iterable[str]) -> Iterable[str]:
    """I8: no secret in any log."""
    for secret in secrets:
        if secret in logs:
            yield "I8: a secret stands in a log"
