"""Run the story once, report, and end everything that was started."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path

from rich.console import Console

from gpupod_rehearsal.controlplane import ProgressLine
from gpupod_rehearsal.controlplane.build import BuildFailed
from gpupod_rehearsal.controlplane.process import Abandoned, ServerFailed
from gpupod_rehearsal.controlplane.toolchain import NoToolchain
from gpupod_rehearsal.demo.acts import DemoFailed, play
from gpupod_rehearsal.demo.processes import StartFailed
from gpupod_rehearsal.demo.report import make_report, show
from gpupod_rehearsal.demo.stage import NotThisCluster, Stage, StageOptions
from gpupod_rehearsal.demo.table import Screen


def run_demo(*, keep: bool = False, kubeconfig: Path | None = None) -> int:
    """0: the invariants held and all cells verify; 1: they did not, with the reason; 130 and 143: interrupted."""
    console = Console()
    try:
        return asyncio.run(_main(console, keep=keep, kubeconfig=kubeconfig))
    except (KeyboardInterrupt, asyncio.CancelledError) as end:
        console.print("interrupted; everything that was started has ended")
        return 130 if isinstance(end, KeyboardInterrupt) else 143
    except (DemoFailed, StartFailed, NotThisCluster, BuildFailed, NoToolchain, ServerFailed, Abandoned) as error:
        console.print(f"[red]FAILED[/red] {error}")
        return 1


async def _main(console: Console, *, keep: bool, kubeconfig: Path | None) -> int:
    line = ProgressLine()
    options = StageOptions(kubeconfig=kubeconfig, say=line)
    me = asyncio.current_task()
    assert me is not None
    # SIGTERM ends the demo as Ctrl-C does: through the same way out
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    async with Stage(options) as stage:
        line.close()
        try:
            with Screen(console) as screen:
                story = await play(stage, screen)
            report = await make_report(stage, story)
        except DemoFailed:
            _last_words(stage, console)
            raise
        show(report, story, console)
        if report.problems:
            _last_words(stage, console)
        if keep:
            await _stay(stage, console)
    return 1 if report.problems else 0


async def _stay(stage: Stage, console: Console) -> None:
    console.print("\nThe world stays up until Ctrl-C:")
    console.print(f"  export KUBECONFIG={stage.kubeconfig}", highlight=False)
    console.print("  kubectl get gpupods,sweepcells -n demo", highlight=False)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


def _last_words(stage: Stage, console: Console) -> None:
    """The end of the operator's log: the folder goes with the demo."""
    if stage.operator is None:
        return
    console.print("the operator's last lines:")
    for text in stage.operator.log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]:
        console.print(f"  {text}", highlight=False, markup=False)
