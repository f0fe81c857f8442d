"""`conf update | clear-override | refresh`: change what one row says, in the GpuPod and nowhere else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from gpupod_operator.api.annotations import RECONCILE_AT
from gpupod_operator.api.times import format_time
from gpupod_operator.cli.plugin.account import Listed, list_account
from gpupod_operator.cli.plugin.asking import recorded_pod
from gpupod_operator.cli.plugin.failure import Failed
from gpupod_operator.cli.plugin.kube import Kube
from gpupod_operator.cli.plugin.ownership import warn_of_other_managers
from gpupod_operator.core.provider import ProviderPod, ProviderState
from gpupod_operator.render.rows import pod_object, row_of
from gpupod_operator.runpod.requests import RUNPOD

SSH_PORT = 22


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("update")(update)
    app.command("clear-override")(clear_override)
    app.command("refresh")(refresh)


def update(
    context: typer.Context,
    name: str,
    host: Annotated[str | None, typer.Option(help="Pin the host.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Pin the port.")] = None,
    this_pod: Annotated[bool, typer.Option("--this-pod", help="The pin ends with the present pod.")] = False,
) -> None:
    """Pin the row's host, port or both. Without a GpuPod of this name one is made that is paused and only has a row."""
    kube: Kube = context.obj
    if host is None and port is None:
        raise typer.BadParameter("give --host, --port or both")
    found = kube.find_pod(name)
    given: dict[str, Any] = {key: value for key, value in (("host", host), ("port", port)) if value is not None}
    if found is None:
        if this_pod:
            raise Failed(f"there is no GpuPod {name}, and so no pod that the pin could end with")
        made = kube.create_pod(name, {"paused": True, "podsConf": {"endpointOverride": given}})
        typer.echo(f"GpuPod {name} created: paused, with a row and nothing else")
        _tell(made)
        return
    warn_of_other_managers(found)
    # a pin for an older pod would have no effect, so its binding goes unless it is made anew
    given["podId"] = recorded_pod(found) if this_pod else None
    _tell(kube.patch_pod(name, {"spec": {"podsConf": {"endpointOverride": given}}}))


def clear_override(context: typer.Context, name: str) -> None:
    """Follow the pod again."""
    kube: Kube = context.obj
    warn_of_other_managers(kube.pod(name))
    _tell(kube.patch_pod(name, {"spec": {"podsConf": {"endpointOverride": None}}}))


def refresh(
    context: typer.Context,
    name: str,
    runpod_key_file: Annotated[
        Path | None, typer.Option(help="File with a RunPod key, for a pod that no GpuPod records yet.")
    ] = None,
    runpod_api: Annotated[str, typer.Option(help="Base address of RunPod's API.")] = RUNPOD,
) -> None:
    """Have the operator look again now. Without a GpuPod of this name: watch the one live pod that has it (paused)."""
    kube: Kube = context.obj
    if kube.find_pod(name) is not None:
        moment = format_time(datetime.now(UTC))
        typer.echo(f"{RECONCILE_AT}: {moment}")
        _tell(kube.patch_pod(name, {"metadata": {"annotations": {RECONCILE_AT: moment}}}))
        return
    if runpod_key_file is None:
        raise Failed(f"there is no GpuPod {name}; to look for a pod of this name, give --runpod-key-file FILE")
    pod_id = the_one(name, list_account(runpod_key_file, runpod_api)).id
    typer.echo(f"spec.adopt.podId: {pod_id}")
    kube.create_pod(name, {"paused": True, "adopt": {"podId": pod_id}})
    typer.echo(f"GpuPod {name} created: paused, so the pod is watched, has a row, and is acted on in no way")


def the_one(name: str, account: Listed) -> ProviderPod:
    """The only live pod of this name, RUNNING and with an endpoint. Raises Failed: a name alone is no identity."""
    named = [pod for pod in account.pods if pod.name == name and pod.live]
    if not named:
        raise Failed(f"no live pod is named {name} in this account")
    if len(named) > 1:
        ids = ", ".join(sorted(pod.id for pod in named))
        raise Failed(f"{len(named)} live pods are named {name} ({ids}): kubectl gpupod adopt {name} POD_ID")
    (pod,) = named
    if pod.state is not ProviderState.RUNNING:
        raise Failed(f"pod {pod.id} ({name}) is {pod.raw_state}, not RUNNING")
    mapping = pod.mapping(SSH_PORT)
    if mapping is None or mapping.public is None or mapping.ip is None:
        raise Failed(f"pod {pod.id} ({name}) has no public port for 22/tcp")
    return pod


def _tell(found: dict[str, Any]) -> None:
    """The row as it stands in the object; what is live in it follows with the operator's next pass."""
    row, verdict = row_of(pod_object(found))
    typer.echo(f"{'row' if row is not None else 'no row'}: {verdict.message}")
