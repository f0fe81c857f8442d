"""`gpupod-operator uninstall-check`: may the operator go? Not while a GpuPod holds a pod that bills."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from gpupod_operator.api.names import GPUPODS
from gpupod_operator.cluster.client import ClusterClient
from gpupod_operator.cluster.events import EventPoster
from gpupod_operator.cluster.login import login
from gpupod_operator.cluster.transport import ApiTransport
from gpupod_operator.ports import ApiForbidden, ApiNotFound, ApiUnavailable
from gpupod_operator.runtime.clock import SystemClock
from gpupod_operator.runtime.leaving import would_bill_on

HOW = (
    "nothing was uninstalled: without an operator these pods go on billing, and nothing saves their results. Delete "
    "the GpuPods first (kubectl delete gpupods --all -A) and wait until they are gone; see docs/uninstall.md"
)


def uninstall_check(
    watch_namespace: Annotated[
        list[str] | None, typer.Option("--watch-namespace", help="Look into these namespaces only; repeatable.")
    ] = None,
) -> None:
    """Exit 1, naming pods and prices, while GpuPods hold pods. Read-only; the Helm chart asks before an uninstall."""
    raise typer.Exit(asyncio.run(_check(watch_namespace or [])))


async def _check(namespaces: list[str]) -> int:
    login()
    async with ApiTransport() as transport:
        cluster = ClusterClient(
            transport, EventPoster(SystemClock(), controller="x", instance="x"), permit=lambda: False
        )
        objects: list[dict[str, Any]] = []
        everywhere: list[str | None] = [None]
        try:
            for namespace in namespaces or everywhere:
                objects += await cluster.list_all(GPUPODS, namespace)
        except ApiNotFound:
            return 0  # the kind is not in the cluster, so no object is
        except (ApiForbidden, ApiUnavailable) as error:
            typer.echo(f"gpupod-operator: whether pods bill cannot be known: {error}", err=True)
            return 1
    lines = would_bill_on(objects)
    for line in lines:
        typer.echo(line, err=True)
    if lines:
        typer.echo(HOW, err=True)
    return 1 if lines else 0
