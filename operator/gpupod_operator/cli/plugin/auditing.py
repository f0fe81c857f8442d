"""`audit`: where does the money go? Reads only, whatever it finds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gpupod_operator.cli.plugin.account import list_account
from gpupod_operator.cli.plugin.kube import Kube
from gpupod_operator.cli.plugin.screen import show_table
from gpupod_operator.cli.plugin.words import dollars
from gpupod_operator.render.rows import pod_object
from gpupod_operator.runpod.requests import RUNPOD
from gpupod_operator.runtime.buckets import LEAKS, Cloud, held, per_bucket, sort_out

LEAKING = 2
"""Exit code when something bills that nobody needs."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit")(audit)


def audit(
    context: typer.Context,
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="The whole cluster.")] = False,
    runpod_key_file: Annotated[
        Path | None,
        typer.Option(help="File with a RunPod key: also shows pods that no GpuPod records. Implies -A."),
    ] = None,
    runpod_api: Annotated[str, typer.Option(help="Base address of RunPod's API.")] = RUNPOD,
    instance_id: Annotated[str | None, typer.Option(help="The operator's --instance-id, if it has one.")] = None,
) -> None:
    """Every pod in a bucket, with its price. Exit 2 when something leaks (unreachable, orphan). Changes nothing."""
    kube: Kube = context.obj
    cloud = None
    # The cloud first, the cluster second: an object that is made in between explains its pod, the reverse would not.
    if runpod_key_file is not None:
        listed = list_account(runpod_key_file, runpod_api)
        cloud = Cloud(listed.account, listed.pods, instance_id or kube.instance_id())
    objects = [pod_object(raw) for raw in kube.pods(everywhere=everywhere or cloud is not None)]
    known = filter(None, (held(pod.namespace, pod.name, pod.uid, pod.status) for pod in objects))
    entries = sort_out(known, [cloud] if cloud is not None else [], datetime.now(UTC))
    show_table(
        ("BUCKET", "PODS", "$/H"),
        (
            (bucket, str(count), dollars(total) + (f" + {unpriced} unknown" if unpriced else ""))
            for bucket, count, total, unpriced in per_bucket(entries)
        ),
    )
    if entries:
        typer.echo("")
        show_table(
            ("BUCKET", "POD", "NAME", "$/H", "NOTE"),
            ((e.bucket, e.pod_id, e.name, dollars(e.per_hour), e.note) for e in entries),
        )
    if cloud is None:
        typer.echo("\nGpuPods only; orphans and pods of others are seen with --runpod-key-file FILE")
    leaks = [entry for entry in entries if entry.bucket in LEAKS]
    if leaks:
        total = sum(entry.per_hour for entry in leaks if entry.per_hour is not None)
        typer.echo(f"\nleaking: {len(leaks)} pods, {dollars(total or None)}/h", err=True)
        raise typer.Exit(LEAKING)
