"""Spec fields whose behaviour is not built yet: one table, which must shrink to nothing.

A restricting field (spend, approval, shields, artifacts, volume) that is set makes the operator refuse to act on the
object: it never fails open on money or data. Any other is shown and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gpupod_operator.api.gpupod_spec import GpuPodSpec, WorkloadSpec
from gpupod_operator.api.policies import UpdateStrategy, UploadMode, Verify
from gpupod_operator.api.sweepcell import SweepCellSpec

Spec = TypeVar("Spec", GpuPodSpec, SweepCellSpec)


@dataclass(frozen=True, slots=True)
class UnsupportedField(Generic[Spec]):
    """`path` as users write it; `is_set` is true for anything but the default."""

    path: str
    restricting: bool
    is_set: Callable[[Spec], bool]


GPUPOD: tuple[UnsupportedField[GpuPodSpec], ...] = (
    UnsupportedField("spec.workload.stallAfter", False, lambda s: s.workload.stall_after != WorkloadSpec().stall_after),
    UnsupportedField("spec.health.resumes", False, lambda s: s.health.resumes != 0),
    UnsupportedField("spec.updateStrategy", False, lambda s: s.update_strategy is not UpdateStrategy.ON_DELETE),
)

SWEEPCELL: tuple[UnsupportedField[SweepCellSpec], ...] = (
    UnsupportedField("spec.upload.mode", True, lambda s: s.upload.mode is not UploadMode.AGENT),
    UnsupportedField("spec.upload.maxCellsPerCommit", False, lambda s: s.upload.max_cells_per_commit != 1),
    UnsupportedField("spec.verify", True, lambda s: s.verify is not Verify.HASH),
)


def unsupported(spec: GpuPodSpec) -> tuple[UnsupportedField[GpuPodSpec], ...]:
    """The fields of this GpuPod that are set and not built."""
    return tuple(f for f in GPUPOD if f.is_set(spec))


def unsupported_cell(spec: SweepCellSpec) -> tuple[UnsupportedField[SweepCellSpec], ...]:
    """The fields of this SweepCell that are set and not built."""
    return tuple(f for f in SWEEPCELL if f.is_set(spec))
