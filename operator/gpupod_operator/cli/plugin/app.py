"""The command tree, and the flags of kubectl that hold for every command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from pydantic import ValidationError

from gpupod_operator import __version__
from gpupod_operator.cli.plugin import adopting, asking, auditing, cells, conf, receipts, session, why
from gpupod_operator.cli.plugin.failure import Failed
from gpupod_operator.cli.plugin.kube import Kube

GLOBAL_FLAGS = {"-n": "--namespace", "--namespace": "--namespace", "--context": "--context"}
GLOBAL_FLAGS |= {"--kubeconfig": "--kubeconfig"}
CELLS = {"list", "generate"}

app = typer.Typer(
    name="kubectl gpupod",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Ask why a GPU pod is as it is, log in to it, and give it orders that name its exact id.",
)


@app.callback()
def connect(
    context: typer.Context,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Namespace; default: the context's.")
    ] = None,
    kube_context: Annotated[str | None, typer.Option("--context", help="Context of the kubeconfig.")] = None,
    kubeconfig: Annotated[str | None, typer.Option("--kubeconfig", help="Path; default: $KUBECONFIG.")] = None,
) -> None:
    """Remember where to connect; the first request connects."""
    context.obj = Kube(kubeconfig=kubeconfig, context=kube_context, namespace=namespace)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


for group in (why, session, auditing, asking, adopting, receipts):
    group.register(app)
app.add_typer(cells.app, name="cells")
app.add_typer(conf.app, name="conf")


def hoist(arguments: Sequence[str]) -> list[str]:
    """The arguments with kubectl's flags first: people write them anywhere. What follows `--` is left alone."""
    flags: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
            break
        name, equals, value = word.partition("=")
        if name not in GLOBAL_FLAGS:
            rest.append(word)
        elif equals:
            flags += [GLOBAL_FLAGS[name], value]
        else:
            # without a value the flag stays last, and the parser says what is missing
            flags += [GLOBAL_FLAGS[name], *(value for value in (next(words, None),) if value is not None)]
    return [*flags, *_with_list(rest)]


def _with_list(words: list[str]) -> list[str]:
    """`cells NAME` is short for `cells list NAME`; a pod named like a command needs the long form."""
    if words[:1] == ["cells"] and len(words) > 1 and words[1] not in CELLS and not words[1].startswith("-"):
        return ["cells", "list", *words[1:]]
    return words


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point. Exit codes: 0 done, 1 not (one line says why), 2 usage, or a leak found by `audit`."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(args=hoist(given), prog_name="kubectl gpupod", standalone_mode=False)
    except Failed as failure:
        typer.echo(f"kubectl gpupod: {failure}", err=True)
        sys.exit(1)
    except ValidationError as error:
        what = f"{error.title}: {error.error_count()} fields that this version cannot read"
        typer.echo(f"kubectl gpupod: {what}; is the plugin older than the operator?", err=True)
        sys.exit(1)
    except typer.TyperException as error:
        if error.format_message():  # else it was the help, which is printed already
            typer.echo(f"kubectl gpupod: {error.format_message()}", err=True)
        sys.exit(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # `| head` has read enough; without this the interpreter complains once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    sys.exit(code if isinstance(code, int) else 0)
