"""`approve` and `migrate`: orders to the operator, each for exactly the pod that status records."""

from __future__ import annotations

from typing import Any

import typer

from gpupod_operator.api.annotations import APPROVE_TERMINATE, MIGRATE
from gpupod_operator.api.conditions import find_condition
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.cli.plugin.failure import Failed
from gpupod_operator.cli.plugin.kube import Kube, Refused
from gpupod_operator.cli.plugin.words import dollars

TRIES = 5
"""The operator writes the same object; a change of anything but the pod id is no reason to give up."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("approve")(approve)
    app.command("migrate")(migrate)


def approve(context: typer.Context, name: str) -> None:
    """Approve the end of the present pod, for 24 h. The gate still asks about the cells."""
    order(context.obj, name, APPROVE_TERMINATE)


def migrate(context: typer.Context, name: str) -> None:
    """Have the present pod replaced by a new one, through the gate."""
    order(context.obj, name, MIGRATE)


def order(kube: Kube, name: str, annotation: str) -> None:
    """Print the annotation, then set it under the condition that the pod id is still the printed one."""
    found = kube.pod(name)
    pod_id = recorded_pod(found)
    typer.echo(f"{annotation}: {pod_id}")
    typer.echo("\n".join(f"  {line}" for line in _about(found)))
    for _ in range(TRIES):
        version = found["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version, "annotations": {annotation: pod_id}}}
        try:
            kube.patch_pod(name, patch)
        except Refused as refusal:
            if refusal.status != 409:
                raise
            found = kube.pod(name)
            if recorded_pod(found) != pod_id:
                raise Failed(f"GpuPod {name} has another pod now; nothing was set, look again") from None
        else:
            typer.echo(f"set on GpuPod {name}; kubectl gpupod why {name} says what follows")
            return
    raise Failed(f"GpuPod {name} changes too fast; nothing was set, try again")


def recorded_pod(found: dict[str, Any]) -> str:
    """The pod id that status records. Raises Failed without one: there is nothing to name."""
    status = GpuPodStatus.model_validate(found.get("status") or {})
    pod_id = status.attempt.pod_id if status.attempt is not None else None
    if pod_id is None:
        raise Failed(f"GpuPod {found['metadata']['name']} has no pod now (phase {status.phase or 'unknown'})")
    return pod_id


def _about(found: dict[str, Any]) -> list[str]:
    status = GpuPodStatus.model_validate(found.get("status") or {})
    pod = status.pod
    lines = []
    if pod is not None:
        gpu, cost = pod.gpu_summary or "GPU unknown", dollars(pod.cost_per_hour)
        lines.append(f"{pod.name or 'unnamed'}, {gpu}, {cost}/h, {pod.provider_status or 'status unknown'}")
    safe = find_condition(status.conditions, "ArtifactsSafe")
    if safe is not None:
        lines.append(f"artifacts safe: {safe.status} ({safe.reason}) {safe.message}")
    return lines
