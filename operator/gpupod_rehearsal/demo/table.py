"""The live table: pods, phase, GPU, $/h, endpoint, cells, and what the operator says."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from gpupod_rehearsal.demo.acts import Story

MARKS = {
    "Verified": ("█", "green"),
    "Uploading": ("▓", "cyan"),
    "Produced": ("▒", "yellow"),
    "Partial": ("▒", "yellow"),
    "Producing": ("░", "blue"),
    "Blocked": ("!", "red"),
    "Failed": ("!", "red"),
    "Lost": ("x", "red"),
}


class Screen:
    """On a terminal a live table; elsewhere one line per new sentence, so that a log stays readable."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, transient=False) if console.is_terminal else None
        self._said = 0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, pod: dict[str, Any], cells: list[dict[str, Any]], story: Story) -> None:
        """Draw the state of now."""
        if self._live is not None:
            self._live.update(Group(_table(pod, cells), _says(story)))
            return
        for message in story.messages[self._said :]:
            phase = (pod.get("status") or {}).get("phase", "")
            line = f"{time.monotonic() - story.began:6.1f}s  {phase:<12} {_done(cells):>5}  {message}"
            self._console.print(line, soft_wrap=True, highlight=False)
        self._said = len(story.messages)


def _table(pod: dict[str, Any], cells: list[dict[str, Any]]) -> Table:
    status = pod.get("status") or {}
    shown, endpoint = status.get("pod") or {}, status.get("endpoint") or {}
    table = Table(box=None, pad_edge=False)
    for name in ("NAME", "PHASE", "GPU", "$/H", "ENDPOINT", "CELLS"):
        table.add_column(name)
    strip = Text()
    for cell in sorted(cells, key=lambda c: str(c["metadata"]["name"])):
        mark, colour = MARKS.get((cell.get("status") or {}).get("phase", ""), ("·", "dim"))
        strip.append(mark, colour)
    table.add_row(
        pod["metadata"]["name"],
        status.get("phase", ""),
        shown.get("gpuSummary", ""),
        shown.get("costPerHour", ""),
        endpoint.get("address", ""),
        strip + Text(f" {_done(cells)}"),
    )
    return table


def _says(story: Story) -> Text:
    return Text("\n".join(f"  {m}" for m in story.messages[-4:]), "dim")


def _done(cells: list[dict[str, Any]]) -> str:
    verified = sum((c.get("status") or {}).get("phase") == "Verified" for c in cells)
    return f"{verified}/{len(cells)}"
