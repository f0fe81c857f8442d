"""Does the live pod match the spec? A hash with a version decides, so an operator upgrade never re-creates a pod."""

from __future__ import annotations

import hashlib
import json

from gpupod_operator.api.base import dump
from gpupod_operator.api.gpupod_spec import GpuPodSpec
from gpupod_operator.api.phases import AttemptCause
from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gpupod.scope import Scope

HASH_VERSION = 1


def spec_hash(spec: GpuPodSpec) -> str:
    """Of what a create call sends: the container and the volume (placement is policy for the next create only)."""
    parts = {"container": dump(spec.container), "volume": dump(spec.volume) if spec.volume is not None else None}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def check_drift(scope: Scope) -> None:
    """`UpToDate`. With OnDelete nothing is done about a difference; the `migrate` annotation applies it."""
    attempt = scope.status.attempt
    if attempt is None or attempt.pod_id is None:
        return
    if attempt.cause is AttemptCause.ADOPT or attempt.spec_hash is None or attempt.hash_version != HASH_VERSION:
        scope.condition("UpToDate", None, Reason.TAKEN_OVER, "this pod was not created from this spec")
        return
    if spec_hash(scope.spec) == attempt.spec_hash:
        scope.condition("UpToDate", True, Reason.UP_TO_DATE, "the pod was created from this container and volume")
        return
    scope.condition(
        "UpToDate",
        False,
        Reason.REPLACE_REQUIRED,
        f"container or volume changed since pod {attempt.pod_id} was created; it goes on as it is. Set "
        f"gpupod.dev/migrate: {attempt.pod_id} to have a new pod made through the gate",
    )
