"""`adopt NAME POD_ID`: have an existing pod managed. The id is the identity; nothing is written to the pod."""

from __future__ import annotations

from typing import Annotated

import typer

from gpupod_operator.cli.plugin.kube import Kube
from gpupod_operator.cli.plugin.ownership import warn_of_other_managers


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("adopt")(adopt)


def adopt(
    context: typer.Context,
    name: str,
    pod_id: str,
    paused: Annotated[bool, typer.Option("--paused", help="Only watch it and render its row; act on nothing.")] = False,
) -> None:
    """Take over exactly this pod, as GpuPod NAME. Deleting the GpuPod later ends the pod by its deletionPolicy."""
    kube: Kube = context.obj
    found = kube.find_pod(name)
    typer.echo(f"spec.adopt.podId: {pod_id}")
    if found is not None:
        warn_of_other_managers(found)
        spec = {"adopt": {"podId": pod_id}, **({"paused": True} if paused else {})}
        kube.patch_pod(name, {"spec": spec})
        typer.echo(f"set on GpuPod {name}")
        return
    kube.create_pod(name, {"adopt": {"podId": pod_id}, **({"paused": True} if paused else {})})
    typer.echo(
        f"GpuPod {name} created{' (paused)' if paused else ''}; deleting it ends the pod (deletionPolicy Terminate)"
    )
