"""`python -m bench`: see `--help`. The table goes to stdout, the raw numbers to a JSON file."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from rich.console import Console

from bench.measures import measure
from bench.profiles import summarize
from bench.report import as_json, show
from bench.stage import Plan, Stage


def main() -> int:
    options = _parser().parse_args()
    try:
        return asyncio.run(_run(options))
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("interrupted; everything that was started has ended", file=sys.stderr)
        return 130


async def _run(options: argparse.Namespace) -> int:
    me = asyncio.current_task()
    assert me is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    plan = Plan(options.pods, options.namespaces, options.observe_every, options.profile, options.keep, options.probes)
    console = Console(width=110)
    async with Stage(plan) as stage:
        numbers = await measure(stage, idle=options.idle, restart=options.restart)
        assert stage.operator is not None
        await stage.operator.end(60)
        profile = summarize(stage.workdir, options.profile) if options.profile else None
    show(numbers, console)
    if profile is not None:
        console.print(profile, highlight=False, markup=False)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(as_json(numbers) + "\n", encoding="utf-8")
    console.print(f"raw numbers: {options.json}", highlight=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures the operator with a whole fleet.")
    parser.add_argument("--pods", type=int, default=1000, help="GpuPods in all")
    parser.add_argument("--namespaces", type=int, default=1, help="over which they are spread")
    parser.add_argument("--probes", type=int, default=5, help="how many of them are applied one by one, at rest")
    parser.add_argument("--observe-every", type=float, default=15.0, help="seconds between two lists of the account")
    parser.add_argument("--idle", type=float, default=300.0, help="idle seconds in which nothing may be written")
    parser.add_argument("--no-restart", dest="restart", action="store_false", help="leave the restart out")
    parser.add_argument("--profile", choices=("cpu", "memory"), help="run the operator under a profiler (much slower)")
    parser.add_argument("--keep", type=Path, help="folder for logs and profiles that stays")
    parser.add_argument("--json", type=Path, default=Path("bench-report/bench.json"), help="where the raw numbers go")
    return parser


if __name__ == "__main__":
    sys.exit(main())
