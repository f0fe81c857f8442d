"""Spec fields whose behaviour is not built yet. This table must shrink to nothing.

A restricting field (spend, approval, shields, artifacts, volume) that is set makes the operator refuse to act on the
object: it never fails open on money or data. Any other is shown and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.sweepcell import SweepCellSpec


@dataclass(frozen=True, slots=True)
class UnsupportedField:
    """`path` as users write it; `is_set` is true for anything but the default."""

    path: str
    restricting: bool
    is_set: Callable[[Any], bool]


GPUPOD: tuple[UnsupportedField, ...] = (
    UnsupportedField("spec.health.resumes", False, lambda s: s.health.resumes != 0),
    UnsupportedField("spec.workload.stallAfter", False, lambda s: s.workload.stall_after.total_seconds() != 900),
    UnsupportedField("spec.spend.ttl", True, lambda s: s.spend.ttl is not None),
    UnsupportedField("spec.spend.maxTotal", True, lambda s: s.spend.max_total is not None),
    UnsupportedField("spec.updateStrategy: Recreate", False, lambda s: s.update_strategy == "Recreate"),
)

SWEEPCELL: tuple[UnsupportedField, ...] = (
    UnsupportedField("spec.upload.mode", True, lambda s: s.upload.mode != "Agent"),
    UnsupportedField("spec.upload.maxCellsPerCommit", False, lambda s: s.upload.max_cells_per_commit != 1),
    UnsupportedField("spec.verify: ReadBack", True, lambda s: s.verify == "ReadBack"),
)


def unsupported(spec: GpuPodSpec) -> tuple[UnsupportedField, ...]:
    """The fields of this GpuPod that are set and not built."""
    return tuple(f for f in GPUPOD if f.is_set(spec))


def unsupported_cell(spec: SweepCellSpec) -> tuple[UnsupportedField, ...]:
    """The fields of this SweepCell that are set and not built."""
    return tuple(f for f in SWEEPCELL if f.is_set(spec))
