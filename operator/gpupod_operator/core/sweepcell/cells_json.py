"""cells.json: what the agent on the pod is told about the cells of its pod. Deterministic bytes, no secrets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
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


def cells_json(pod_id: str, attempt: str, cells: Sequence[CellOrder]) -> bytes:
    """The file's bytes, equal for equal input. Left out: cells that must not be uploaded (a destination conflict, or
    an upload mode other than Agent); a cell without an order is never read there, so the gate takes it for unknown.
    """
    body = {
        "format": FORMAT,
        "podId": pod_id,
        "attempt": attempt,
        "cells": [_order(cell) for cell in sorted(cells, key=lambda c: (c.name, c.uid)) if _wanted(cell)],
    }
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def _wanted(cell: CellOrder) -> bool:
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
