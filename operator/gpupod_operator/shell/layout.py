"""Where things lie on a rented pod; the agent's own view of it is gpupod_cell.layout."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True)
class PodLayout:
    """Absolute paths on the pod."""

    root: str = "/workspace/.gpupod"
    secrets: str = "/dev/shm/gpupod"  # noqa: S108 - in memory, mode 0700, made by our own script
    work: str = "/workspace"

    @property
    def cells(self) -> str:
        return f"{self.root}/cells.json"

    def launch_folder(self, attempt: str) -> str:
        """Raises ValueError for an attempt id that is not a plain word."""
        return f"{self.root}/{plain(attempt)}"


def plain(word: str) -> str:
    """The word, if it can be a file name and stand in a script without harm. Raises ValueError."""
    if not _NAME.fullmatch(word) or word == "agent":
        raise ValueError(f"{word!r} is not a plain word")
    return word
