"""The commands of `gpupod-operator`."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from gpupod_operator import __version__
from gpupod_operator.cli.check import check
from gpupod_operator.cli.rehearse import rehearse
from gpupod_operator.cli.uninstall import uninstall_check
from gpupod_operator.cluster.login import own_namespace
from gpupod_operator.handlers.operator import run as serve
from gpupod_operator.handlers.preflight import StartError
from gpupod_operator.runtime.logs import set_up_logging
from gpupod_operator.runtime.settings import Settings

USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
"""Every mistake on the command line. typer brings a click of its own and exports no name for this class."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Rents GPU pods on RunPod for experiment sweeps, keeps them reachable, and loses neither work nor money.",
)


@app.command()
def run(
    runpod_api: Annotated[str | None, typer.Option(help="Base address of RunPod's API.")] = None,
    hub_endpoint: Annotated[str | None, typer.Option(help="Base address of the Hugging Face Hub.")] = None,
    runpod_key_file: Annotated[Path | None, typer.Option(help="File with the operator's own RunPod key.")] = None,
    namespace: Annotated[str | None, typer.Option(help="The operator's own namespace (Lease, key copies).")] = None,
    watch_namespace: Annotated[
        list[str] | None, typer.Option("--watch-namespace", help="Serve only these namespaces; repeatable.")
    ] = None,
    instance_id: Annotated[str | None, typer.Option(help="Instead of the uid of kube-system (cloned etcd).")] = None,
    observe_every: Annotated[str | None, typer.Option(help="Time between two lists of the account, e.g. 15s.")] = None,
    visit_every: Annotated[str | None, typer.Option(help="Time between two visits of a healthy pod, e.g. 30s.")] = None,
    create_settle: Annotated[
        str | None, typer.Option(help="How long an ambiguous create is looked for, e.g. 60s.")
    ] = None,
    timer_grace: Annotated[
        str | None, typer.Option(help="From the end of spend.ttl until a pod stops itself, e.g. 10m.")
    ] = None,
    reap_orphans: Annotated[
        bool | None, typer.Option(help="Delete pods of this operator whose object is gone and that were never Ready.")
    ] = None,
    max_hourly_account: Annotated[
        str | None, typer.Option(help="USD per hour that all pods of an account may bill, e.g. 25.00.")
    ] = None,
    max_hourly_namespace: Annotated[
        str | None, typer.Option(help="USD per hour that the pods of one namespace may bill.")
    ] = None,
    max_pods: Annotated[int | None, typer.Option(help="Pods that may run or be on their way at once.")] = None,
    ssh_identity_file: Annotated[str | None, typer.Option(help="IdentityFile in the rendered ssh_config.")] = None,
    ssh_known_hosts_file: Annotated[
        str | None, typer.Option(help="UserKnownHostsFile in the rendered ssh_config.")
    ] = None,
    leader_elect: Annotated[bool | None, typer.Option(help="Act only while holding the Lease.")] = None,
    health_host: Annotated[str | None, typer.Option(help="Address of the probes and metrics.")] = None,
    health_port: Annotated[int | None, typer.Option(help="/healthz and /readyz; -1 for none.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="/metrics; -1 for none.")] = None,
    log_format: Annotated[str | None, typer.Option(help="json or plain.")] = None,
    log_level: Annotated[str | None, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = None,
) -> None:
    """Run the operator until SIGTERM."""
    given: dict[str, Any] = {
        "runpod_api": runpod_api,
        "hub_endpoint": hub_endpoint,
        "runpod_key_file": runpod_key_file,
        "namespace": namespace or own_namespace(),
        "watch_namespaces": tuple(watch_namespace) if watch_namespace else None,
        "instance_id": instance_id,
        "observe_every": _seconds("--observe-every", observe_every),
        "visit_every": _seconds("--visit-every", visit_every),
        "create_settle": _seconds("--create-settle", create_settle),
        "timer_grace": _seconds("--timer-grace", timer_grace),
        "reap_orphans": reap_orphans,
        "max_hourly_account": max_hourly_account,
        "max_hourly_namespace": max_hourly_namespace,
        "max_pods": max_pods,
        "ssh_identity_file": ssh_identity_file,
        "ssh_known_hosts_file": ssh_known_hosts_file,
        "leader_elect": leader_elect,
        "health_host": health_host,
        "health_port": health_port,
        "metrics_port": metrics_port,
        "log_format": log_format,
        "log_level": log_level,
    }
    try:
        settings = Settings(**{k: v for k, v in given.items() if v is not None})
    except ValidationError as error:
        first = error.errors()[0]
        raise typer.BadParameter(f"{_flag(str(first['loc'][0]))}: {first['msg']}") from None
    set_up_logging(settings.log_format, settings.log_level)
    _be_somebody()
    try:
        asyncio.run(serve(settings))
    except StartError as error:
        typer.echo(f"gpupod-operator: {error}", err=True)
        raise typer.Exit(2) from None


@app.command()
def crds() -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply -f -`."""
    for name in ("gpupods.yaml", "sweepcells.yaml"):
        typer.echo(crd_text(name).rstrip())
        typer.echo("---")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


app.command("check")(check)
app.command("rehearse")(rehearse)
app.command("uninstall-check")(uninstall_check)


def crd_text(name: str) -> str:
    """A CRD as it ships in the package, or from the checkout that the package is run from."""
    packaged = resources.files("gpupod_operator").joinpath("crds", name)
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    return (Path(__file__).parents[3] / "crds" / name).read_text(encoding="utf-8")


def _be_somebody() -> None:
    """In a pod the uid has no passwd entry (on OpenShift it is any number), and kopf and asyncssh ask for a name."""
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = "gpupod-operator"


def _flag(field: str) -> str:
    """As a person wrote it; a flag that may be repeated is named once."""
    return f"--{'watch-namespace' if field == 'watch_namespaces' else field.replace('_', '-')}"


def _seconds(flag: str, text: str | None) -> float | None:
    """`15s`, `500ms` or plain seconds."""
    if text is None:
        return None
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    for unit, size in units.items():
        number = text.removesuffix(unit)
        if text.endswith(unit) and number.replace(".", "", 1).isdigit():
            return float(number) * size
    if text.replace(".", "", 1).isdigit():
        return float(text)
    raise typer.BadParameter(f"{flag}: not a duration like 15s: {text!r}")


def main() -> None:
    """Entry point: usage errors end with code 2 and one line."""
    try:
        code = app(standalone_mode=False)
    except USAGE_ERROR as error:
        typer.echo(f"gpupod-operator: {error.format_message()}", err=True)
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)
