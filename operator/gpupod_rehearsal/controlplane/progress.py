"""How a long step tells what it does: one line on a terminal, a line now and then in a log."""

import sys
import time
from typing import TextIO

_LOG_EVERY_SECONDS = 20.0


class ProgressLine:
    """A callable for sentences. On a terminal each replaces the last; elsewhere at most one in 20 s is printed."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = self._stream.isatty()
        self._last = float("-inf")
        self._width = 0

    def __call__(self, sentence: str) -> None:
        if self._terminal:
            self._stream.write("\r" + sentence.ljust(self._width))
            self._width = len(sentence)
        elif time.monotonic() - self._last < _LOG_EVERY_SECONDS:
            return
        else:
            self._last = time.monotonic()
            self._stream.write(sentence + "\n")
        self._stream.flush()

    def close(self) -> None:
        """End the line, so that what follows starts on one of its own."""
        if self._terminal and self._width:
            self._stream.write("\n")
            self._stream.flush()
            self._width = 0


def duration(seconds: float) -> str:
    """`45 s` or `4 min 10 s`."""
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"
