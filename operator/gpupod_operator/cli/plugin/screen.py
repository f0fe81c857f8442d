"""Tables for a terminal; plain columns, never cut, where the output is read by a program."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 4000
"""Columns of a pipe: wide enough that no cell is folded."""


def show_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Left-aligned columns under upper-case headers, as kubectl prints them."""
    table = Table(*headers, box=box.SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        # the texts are the cluster's and RunPod's: brackets in them are no markup
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def console() -> Console:
    """Standard output as it is now."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, soft_wrap=True)
