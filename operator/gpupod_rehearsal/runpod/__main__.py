"""`python -m gpupod_rehearsal.runpod`: the simulated vendor as a process. Prints one JSON line once it serves."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import yaml

from gpupod_rehearsal.hosts import NamespaceHost, NamespacesUnavailable, NullHost, PodHost
from gpupod_rehearsal.runpod import scenario
from gpupod_rehearsal.runpod.clock import SystemClock
from gpupod_rehearsal.runpod.contract import Profile
from gpupod_rehearsal.runpod.faults import UnknownFaultError
from gpupod_rehearsal.runpod.simulator import RunPodSimulator
from gpupod_rehearsal.runpod.world import Timings


def main() -> int:
    """Serve until SIGTERM or SIGINT. Returns 2 with one line on stderr when the world cannot be made."""
    options = _parser().parse_args()
    try:
        story = _world(options)
        known = yaml.safe_load(options.keys.read_text(encoding="utf-8")) if options.keys else {}
        keys = scenario.give_keys(story.blueprint, known)
        workdir = options.workdir or Path(tempfile.mkdtemp(prefix="gpupod-runpod-"))
        keys_file = _write_keys(workdir, keys)
        return asyncio.run(_serve(story, workdir, keys_file, options))
    except (NamespacesUnavailable, scenario.ScenarioError, UnknownFaultError, OSError) as error:
        print(f"runpod simulator: {error}", file=sys.stderr)  # noqa: T201 - a command speaks to its caller
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpupod_rehearsal.runpod", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--pod-network", help="first two numbers of the pods' addresses; loopback by default")
    parser.add_argument("--keys", type=Path, help="YAML or JSON file: key alias -> secret; others are drawn")
    parser.add_argument("--workdir", type=Path, help="where pods and the keys file live; a temporary folder by default")
    parser.add_argument("--billing-factor", type=Decimal, help="seconds billed for each second that passes")
    parser.add_argument("--hosts", choices=("namespace", "null"), default="namespace")
    parser.add_argument("--ssh", choices=("auto", "openssh", "asyncssh"), default="auto")
    parser.add_argument("--profile", choices=[item.value for item in Profile])
    parser.add_argument("--scenario", type=Path, help="YAML file: accounts, hosts, images, timings, quotas, faults")
    return parser


def _world(options: argparse.Namespace) -> scenario.Scenario:
    story = scenario.read(options.scenario) if options.scenario else scenario.Scenario()
    if not options.scenario:
        story.blueprint.timings = Timings.fast()
    if options.billing_factor is not None:
        story.blueprint.billing_factor = options.billing_factor
    if options.profile:
        story.profile = Profile(options.profile)
    return story


def _write_keys(workdir: Path, keys: dict[str, str]) -> Path:
    """The keys, where only this user reads them: they never stand on a command line or in a log."""
    workdir.mkdir(parents=True, exist_ok=True)
    path = workdir / "runpod-keys.json"
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(keys, file)
    return path


async def _serve(story: scenario.Scenario, workdir: Path, keys_file: Path, options: argparse.Namespace) -> int:
    hosts: PodHost = NullHost()
    if options.hosts == "namespace":
        hosts = NamespaceHost(workdir, ssh=options.ssh, network=options.pod_network)
        await hosts.check()
    done = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, done.set)
    simulator = RunPodSimulator(
        clock=SystemClock(),
        hosts=hosts,
        blueprint=story.blueprint,
        profile=story.profile,
        quotas=story.quotas,
        port=options.port,
        host=options.host,
    )
    for fault in story.faults:
        simulator.faults.load(fault)
    async with simulator:
        ready = {"url": simulator.url, "keysFile": str(keys_file), "workdir": str(workdir), "pid": os.getpid()}
        print(json.dumps(ready), flush=True)  # noqa: T201 - the caller waits for this line
        await done.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
