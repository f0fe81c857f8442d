"""`gpupod-operator check`: does the key work, and may it do what the operator needs?"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.accounts import Accounts
from gpupod_operator.runpod.keys import KeySource
from gpupod_operator.runtime.clock import SystemClock
from gpupod_operator.runtime.settings import RUNPOD_API


def check(
    runpod_key_file: Annotated[Path, typer.Option(help="File with the RunPod key.")],
    runpod_api: Annotated[str, typer.Option(help="Base address of RunPod's API.")] = RUNPOD_API,
) -> None:
    """Read-only: whose account is it, is its list complete, is the catalog readable? Exit 1 when not."""
    if not runpod_key_file.exists():
        typer.echo(f"gpupod-operator: no key file {runpod_key_file}", err=True)
        raise typer.Exit(2)
    raise typer.Exit(asyncio.run(_check(runpod_api, KeySource.from_file(runpod_key_file))))


async def _check(api: str, key: KeySource) -> int:
    accounts = Accounts(SystemClock(), base_url=api)
    try:
        account = await accounts.open(key)
        pods = await account.provider.list_pods()
        offers = await account.provider.gpu_offers()
    except ProviderError as error:
        typer.echo(f"RunPod refuses: {error}", err=True)
        return 1
    finally:
        await accounts.close()
    identity = account.identity
    typer.echo(f"account   {identity.id}" + ("" if identity.verified else "  (the key lacks the scope account:read)"))
    typer.echo(f"pods      {len(pods)}")
    typer.echo(f"gpu types {len(offers)}")
    return 0 if identity.verified else 1
