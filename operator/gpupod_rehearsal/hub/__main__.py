"""`python -m gpupod_rehearsal.hub`: the simulated Hub as a process of its own; prints one JSON line with its URL."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from gpupod_rehearsal.hub.accounts import HubToken, Role
from gpupod_rehearsal.hub.limits import HubLimits
from gpupod_rehearsal.hub.simulator import HubSimulator

_WRITE: Role = "write"


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; 2 when an argument is wrong or the port is taken."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        simulator = _simulator(options)
        asyncio.run(_serve(simulator, options.repo))
    except (ValueError, OSError) as error:
        sys.stderr.write(f"gpupod_rehearsal.hub: {error}\n")
        return 2
    return 0


def read_token(text: str) -> HubToken:
    """A token from `USER=file:PATH[:ROLE]` or `USER=env:NAME[:ROLE]`. The secret itself is never an argument.

    Raises:
        ValueError: the form is wrong, the role unknown, or the secret empty.
        OSError: the file cannot be read.
    """
    user, _, source = text.partition("=")
    role = "write"
    if source.endswith((":read", ":write")):
        source, _, role = source.rpartition(":")
    scheme, _, place = source.partition(":")
    if not user or scheme not in ("file", "env") or not place:
        raise ValueError("a token is USER=file:PATH[:read|:write] or USER=env:NAME[:read|:write]")
    secret = Path(place).read_text(encoding="utf-8") if scheme == "file" else os.environ.get(place, "")
    if not secret.strip():
        raise ValueError(f"the token of {user} is empty ({scheme}:{place})")
    return HubToken(user, "read" if role == "read" else "write", secret.strip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpupod_rehearsal.hub", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one (default)")
    parser.add_argument("--workdir", type=Path, help="keeps everything over a restart; default: a temporary folder")
    parser.add_argument(
        "--token", action="append", default=[], metavar="USER=file:PATH[:ROLE]", help="or USER=env:NAME[:ROLE]"
    )
    parser.add_argument("--org", action="append", default=[], metavar="ORG=USER[,USER]", help="members who may write")
    parser.add_argument(
        "--repo", action="append", default=[], metavar="KIND:NAMESPACE/NAME[:private]", help="created at start"
    )
    parser.add_argument("--commits-per-hour", type=int, default=HubLimits().commits_per_hour)
    parser.add_argument("--api-requests", type=int, default=HubLimits().api_requests, help="per 5 minutes and user")
    return parser


def _simulator(options: argparse.Namespace) -> HubSimulator:
    limits = replace(HubLimits(), commits_per_hour=options.commits_per_hour, api_requests=options.api_requests)
    orgs: dict[str, dict[str, Role]] = {}
    for text in options.org:
        org, _, members = text.partition("=")
        orgs[org] = dict.fromkeys(members.split(","), _WRITE)
    return HubSimulator(
        tokens=[read_token(text) for text in options.token],
        orgs=orgs,
        workdir=options.workdir,
        limits=limits,
        host=options.host,
        port=options.port,
    )


async def _serve(simulator: HubSimulator, repos: list[str]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    for text in repos:
        kind, _, rest = text.partition(":")
        simulator.create_repo(rest.removesuffix(":private"), kind=kind, private=rest.endswith(":private"))
    async with simulator:
        sys.stdout.write(json.dumps({"url": simulator.url, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        await stopped.wait()


if __name__ == "__main__":
    sys.exit(main())
