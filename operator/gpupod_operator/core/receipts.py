"""Receipts: what permitted an act that may lose data, bound to its evidence by a digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gpupod_operator.api.gpupod_status import Receipt

MAX_NAMED = 50
"""Bound of the name lists in a receipt (api.md)."""


def canonical(evidence: Mapping[str, Any]) -> bytes:
    """The one byte form of the evidence: JSON, UTF-8, sorted keys, no spaces."""
    return json.dumps(evidence, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def evidence_digest(evidence: Mapping[str, Any]) -> str:
    """`sha256:` and the hex digest of the canonical evidence, so that a kept copy can be checked against a receipt."""
    return "sha256:" + hashlib.sha256(canonical(evidence)).hexdigest()


def write_receipt(
    *,
    pod_id: str,
    at: datetime,
    reason: str,
    evidence: Mapping[str, Any],
    verified: int,
    rerun: Sequence[str],
    discarded: Sequence[str],
    policy: str,
    approved_by: str | None,
) -> Receipt:
    """A receipt. Names beyond 50 a list are counted in `policy`; the digest covers all of them."""
    cut = [
        f"{len(n)} cells {what} in all"
        for what, n in (("re-run", rerun), ("discarded", discarded))
        if len(n) > MAX_NAMED
    ]
    return Receipt(
        pod_id=pod_id,
        at=at,
        reason=reason,
        digest=evidence_digest(evidence),
        verified=verified,
        rerun=tuple(sorted(rerun)[:MAX_NAMED]),
        discarded=tuple(sorted(discarded)[:MAX_NAMED]),
        policy="; ".join([policy, *cut]),
        approved_by=approved_by,
    )
