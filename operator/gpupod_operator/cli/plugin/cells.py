"""`cells NAME`: how far each cell of a pod is. `cells generate`: SweepCells for a grid."""

from __future__ import annotations

from typing import Annotated, Any

import typer
import yaml

from gpupod_operator.api.sweepcell import SweepCellStatus
from gpupod_operator.cli.plugin.failure import Failed
from gpupod_operator.cli.plugin.grid import Grid, Templates, artifact, parameter, sweep_cells
from gpupod_operator.cli.plugin.kube import Kube
from gpupod_operator.cli.plugin.screen import show_table
from gpupod_operator.cli.plugin.words import size

app = typer.Typer(no_args_is_help=True, help="The cells of a pod, or SweepCells for a grid.")


@app.command("list")
def list_cells(context: typer.Context, name: str) -> None:
    """How far each cell of this GpuPod is. `cells NAME` does the same."""
    kube: Kube = context.obj
    found = kube.cells(name)
    if not found:
        kube.pod(name)  # says that there is no such GpuPod, where that is the trouble
        typer.echo(f"no SweepCell names GpuPod {name}: nothing automatic will end its pod")
        return
    show_table(("NAME", "SWEEP", "PHASE", "FILES", "SIZE", "COMMIT", "VERIFIED", "NOTE"), (row(cell) for cell in found))


@app.command()
def generate(
    sweep: Annotated[str, typer.Option(help="Name of the sweep; cells are named <sweep>-<cell>.")],
    pod: Annotated[str, typer.Option(help="Name of the GpuPod that runs them.")],
    param: Annotated[list[str], typer.Option(help="NAME=V1,V2,...; repeat it: the grid is their product.")],
    done_file: Annotated[str, typer.Option(help="Path template on the pod, e.g. /workspace/out/{cell}/DONE.")],
    artifacts: Annotated[
        list[str],
        typer.Option(
            "--artifact",
            help="NAME=PATH:FILE,FILE or NAME=PATH:GLOB,GLOB@MIN; e.g. 'evals=/workspace/out/{cell}/evals:*.json@2'.",
        ),
    ],
    repo: Annotated[str, typer.Option(help="Hub repository, e.g. my-org/results.")],
    token_secret: Annotated[str, typer.Option(help="Secret with the Hub token, NAME:KEY.")] = "hf-token:token",  # noqa: S107
    cell: Annotated[str | None, typer.Option(help="Template of a cell's name; default: name-value-... of all.")] = None,
    path: Annotated[str, typer.Option(help="Path template in the repository.")] = "{sweep}/{cell}",
    repo_type: Annotated[str, typer.Option(help="dataset or model.")] = "dataset",
    revision: Annotated[str, typer.Option(help="Branch of the repository.")] = "main",
) -> None:
    """Print SweepCells for a grid. Templates know {sweep}, {cell}, {i} (counted, zero-padded) and each parameter."""
    secret, _, key = token_secret.partition(":")
    try:
        templates = Templates(
            cell=cell,
            done_file=done_file,
            artifacts=tuple(artifact(text) for text in artifacts),
            path=path,
            repo=repo,
            repo_type=repo_type,
            revision=revision,
            token={"name": secret, "key": key or "token"},
        )
        made = sweep_cells(Grid(sweep, pod, tuple(parameter(text) for text in param)), templates)
    except ValueError as error:
        raise Failed(str(error)) from None
    typer.echo(yaml.safe_dump_all(made, sort_keys=False, width=120), nl=False)


def row(cell: dict[str, Any]) -> tuple[str, ...]:
    """The columns of one cell. NOTE is what went wrong last, or what it waits for."""
    status = SweepCellStatus.model_validate(cell.get("status") or {})
    manifest, verification = status.manifest, status.verification
    verified = "-"
    if verification is not None and verification.state is not None:
        verified = str(verification.state)
    note = status.last_error or (status.message if status.phase != "Verified" else "") or ""
    return (
        cell["metadata"]["name"],
        cell["spec"]["sweep"],
        str(status.phase or "-"),
        str(manifest.files) if manifest is not None and manifest.files is not None else "-",
        size(manifest.bytes if manifest is not None else None),
        status.commit.oid[:8] if status.commit is not None and status.commit.oid else "-",
        verified,
        note,
    )
