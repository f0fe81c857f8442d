"""`gpupod-operator rehearse`: the demo, in the rehearsal world that ships beside the operator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def rehearse(
    keep: Annotated[bool, typer.Option(help="Stay up at the end and print the KUBECONFIG line.")] = False,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Use this cluster instead of building one; must not have our CRDs.")
    ] = None,
) -> None:
    """Rent simulated pods, lose a host, move, and report what it cost. No account, no money."""
    # only here: an installed operator image has no rehearsal world in it
    try:
        from gpupod_rehearsal.demo import run_demo  # noqa: PLC0415
    except ImportError as error:
        typer.echo(f"gpupod-operator: the rehearsal world is not installed here ({error})", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(run_demo(keep=keep, kubeconfig=kubeconfig))
