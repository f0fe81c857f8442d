"""The promises, judged from what really happened: the ledger, the request log, the API objects, the logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

Rows = Iterable[Mapping[str, Any]]


def broken(
    ledger: Rows, requests: Rows, objects: Rows, logs: str, secrets: Iterable[str], shown: Rows = ()
) -> list[str]:
    """Every broken invariant in a sentence; none: they held.

    `ledger` is `/_sim/ledger`'s pods, `requests` `/_sim/requests`, `objects` the GpuPods that exist, `shown` whatever
    else the cluster shows to people: events, maps.
    """
    found = [
        *_two_at_once(ledger),
        *_outlived(ledger, objects),
        *_foreign(ledger, requests),
        *_without_receipt(ledger, requests, objects),
        *_told(logs, secrets, (*objects, *shown)),
    ]
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


def _without_receipt(ledger: Rows, requests: Rows, objects: Rows) -> Iterable[str]:
    """I4, I10: an object knows each pod that was deleted for it, from the receipt that permitted it, but for ghosts."""
    deleted = {r["path"].rpartition("/")[2] for r in requests if r["method"] == "DELETE" and r["status"] == 204}
    by_uid = {o["metadata"]["uid"]: o.get("status") or {} for o in objects}
    for row in ledger:
        status = by_uid.get((row["owner"] or "").rpartition("/")[2])
        if row["podId"] not in deleted or status is None:
            continue
        attempt, receipt = status.get("attempt") or {}, status.get("receipt") or {}
        known = {receipt.get("podId"), *(h.get("podId") for h in status.get("history") or [])}
        nonces = {*(attempt.get("retiredNonces") or []), attempt.get("nonce")}
        ghost = row["name"].rpartition("-")[2] in nonces and row["podId"] != attempt.get("podId")
        if row["podId"] not in known and not ghost:
            yield f"I4: {row['podId']} of {row['owner']} was deleted without a receipt"


def _told(logs: str, secrets: Iterable[str], shown: Rows) -> Iterable[str]:
    """I8: no secret in any log, event, status or map."""
    texts = [logs, *(json.dumps(item, default=str) for item in shown)]
    for secret in secrets:
        if any(secret in text for text in texts):
            yield "I8: a secret is shown"
