"""`conf`: rows of pods.conf, by the operator's own renderer, from the committed status of the namespace's GpuPods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gpupod_operator.cli.plugin import pinning
from gpupod_operator.cli.plugin.kube import Kube
from gpupod_operator.cli.plugin.local_files import PRIVATE, PUBLIC, Change, change, differs
from gpupod_operator.cli.plugin.managed import with_block, with_servers
from gpupod_operator.render.known_hosts import known_hosts
from gpupod_operator.render.pods_conf import pods_conf
from gpupod_operator.render.registration import Registration, registration
from gpupod_operator.render.rows import Row, pod_object
from gpupod_operator.render.ssh_config import DEFAULT_PATHS, SshPaths

app = typer.Typer(no_args_is_help=True, help="Rows of pods.conf, and the files on this machine that follow them.")
pinning.register(app)

SshConfig = Annotated[Path, typer.Option(help="Its managed block is written; the rest stays.")]
KnownHosts = Annotated[str, typer.Option(help="Written whole: the pods' pinned host keys.")]
Identity = Annotated[str, typer.Option(help="The private key that ssh is told to use.")]
PodsConf = Annotated[Path | None, typer.Option("--pods-conf", help="Written whole, when given.")]
Mcp = Annotated[Path | None, typer.Option("--mcp", help="MCP file: the SSH_SERVER_* keys of its server `ssh`.")]

SSH_CONFIG = Path("~/.ssh/config")


@dataclass(frozen=True, slots=True)
class Target:
    """One file: how it should be, from how it is. `mode` is for a new one."""

    path: Path
    make: Change
    mode: int


@app.command()
def show(context: typer.Context) -> None:
    """Print pods.conf; on stderr, which GpuPods have no row and why."""
    found = read(context.obj)
    typer.echo(pods_conf(found.rows), nl=False)


@app.command()
def sync(
    context: typer.Context,
    ssh_config: SshConfig = SSH_CONFIG,
    known_hosts_file: KnownHosts = DEFAULT_PATHS.known_hosts_file,
    identity: Identity = DEFAULT_PATHS.identity_file,
    pods_conf_file: PodsConf = None,
    mcp: Mcp = None,
) -> None:
    """Bring the files of this machine in line. Each changes in one step, under a lock, or not at all."""
    rows = read(context.obj).rows
    for target in targets(rows, SshPaths(identity, known_hosts_file), ssh_config, pods_conf_file, mcp):
        changed = change(target.path, target.make, mode=target.mode)
        typer.echo(f"{'written' if changed else 'as it was':<10} {target.path}")


@app.command()
def check(
    context: typer.Context,
    ssh_config: SshConfig = SSH_CONFIG,
    known_hosts_file: KnownHosts = DEFAULT_PATHS.known_hosts_file,
    identity: Identity = DEFAULT_PATHS.identity_file,
    pods_conf_file: PodsConf = None,
    mcp: Mcp = None,
) -> None:
    """Would `sync` change anything? Exit 1 if so. Writes nothing."""
    rows = read(context.obj).rows
    different = False
    for target in targets(rows, SshPaths(identity, known_hosts_file), ssh_config, pods_conf_file, mcp):
        stale = differs(target.path, target.make)
        different = different or stale
        typer.echo(f"{'DIFFERS' if stale else 'OK':<10} {target.path}")
    if different:
        raise typer.Exit(1)


def targets(
    rows: Sequence[Row], paths: SshPaths, ssh_config: Path, pods_conf_file: Path | None, mcp: Path | None
) -> list[Target]:
    """The files to write. known_hosts comes before the ssh config that points to it."""
    files = [
        Target(Path(paths.known_hosts_file), _whole(known_hosts(rows)), PRIVATE),
        Target(ssh_config, lambda text: with_block(text, rows, paths), PRIVATE),
    ]
    if pods_conf_file is not None:
        files.append(Target(pods_conf_file, _whole(pods_conf(rows)), PUBLIC))
    if mcp is not None:
        files.append(Target(mcp, lambda text: with_servers(text, rows, paths), PRIVATE))
    return files


def read(kube: Kube) -> Registration:
    """The rows; GpuPods without one are told about on stderr."""
    objects = [pod_object(raw) for raw in kube.pods()]
    found = registration(objects)
    for pod in objects:
        verdict = found.verdicts[pod.uid]
        if not verdict.registered:
            typer.echo(f"no row for {pod.name}: {verdict.reason}: {verdict.message}", err=True)
    return found


def _whole(text: str) -> Callable[[str], str]:
    return lambda _: text
