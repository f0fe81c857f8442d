"""cells.json: what the agent on the pod is told about the cells of its pod. Deterministic bytes, no secrets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gpupod_operator.api.conditions import find_condition
from gpupod_operator.api.phases import SweepCellPhase
from gpupod_operator.api.policies import UploadMode
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.sweepcell import Artifact, SweepCellSpec, SweepCellStatus

FORMAT = 1


@dataclass(frozen=True, slots=True)
class CellOrder:
    """One SweepCell as the agent's input names it."""

    namespace: str
    name: str
    uid: str
    spec: SweepCellSpec
    status: SweepCellStatus


@dataclass(frozen=True, slots=True)
class TimerOrder:
    """When the pod is to stop itself, and what the agent has to know to do so without losing anything.

    `keeps`: uids of cells that outlive a stop. `unjudged`: names of cells that the agent is not told of.
    """

    deadline: datetime
    written_at: datetime
    pod_started_at: str
    ours: bool
    disposable: bool
    keeps: tuple[str, ...]
    unjudged: tuple[str, ...]


def cells_json(pod_id: str, attempt: str, cells: Sequence[CellOrder], timer: TimerOrder | None = None) -> bytes:
    """The file's bytes, equal for equal input. Left out: cells that must not be uploaded (a destination conflict, or
    an upload mode other than Agent); a cell without an order is never read there, so the gate takes it for unknown.
    """
    body = {
        "format": FORMAT,
        "podId": pod_id,
        "attempt": attempt,
        "cells": [_order(cell) for cell in sorted(cells, key=lambda c: (c.name, c.uid)) if ordered(cell)],
    }
    if timer is not None:
        body["timer"] = _timer(timer)
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def _timer(timer: TimerOrder) -> dict[str, Any]:
    return {
        "deadline": _stamp(timer.deadline),
        "writtenAt": _stamp(timer.written_at),
        "podStartedAt": timer.pod_started_at,
        "ours": timer.ours,
        "disposable": timer.disposable,
        "keeps": list(timer.keeps),
        "unjudged": list(timer.unjudged),
    }


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def ordered(cell: CellOrder) -> bool:
    """Whether the agent is told of this cell."""
    ready = find_condition(cell.status.conditions, "Ready")
    conflict = ready is not None and ready.reason == Reason.DESTINATION_CONFLICT
    return cell.spec.upload.mode is UploadMode.AGENT and not conflict


def _order(cell: CellOrder) -> dict[str, Any]:
    spec, status = cell.spec, cell.status
    verified = status.phase is SweepCellPhase.VERIFIED
    return {
        "name": cell.name,
        "uid": cell.uid,
        "namespace": cell.namespace,
        "sweep": spec.sweep,
        "state": str(status.phase or SweepCellPhase.PENDING),
        "doneFile": spec.source.done_file,
        "artifacts": [_artifact(artifact) for artifact in spec.source.artifacts],
        "destination": {
            "repo": spec.destination.repo,
            "type": str(spec.destination.type),
            "revision": spec.destination.revision,
            "path": spec.destination.path.strip("/"),
        },
        "tokenFrom": str(spec.upload.token_from),
        "progressDeadlineSeconds": int(spec.upload.progress_deadline.total_seconds()),
        "manifest": status.manifest.digest if status.manifest is not None else None,
        # The agent leaves a cell with a commit alone, so only one that a listing has confirmed may name its own.
        "commit": status.commit.oid if verified and status.commit is not None else None,
    }


def _artifact(artifact: Artifact) -> dict[str, Any]:
    return {
        "name": artifact.name,
        "path": artifact.path,
        "files": list(artifact.files) if artifact.files else None,
        "include": list(artifact.include) if artifact.include else None,
        "minFiles": artifact.min_files,
    }
