"""Runs a program that the kernel kills when the process that asked for it dies.

Started as a script: `python -I -S leash.py PARENT_PID SIGNAL PROGRAM ARGS...`. It asks the kernel for the signal and
becomes the program. A `preexec_fn` would do the same between fork and exec of a threaded process, where it may
deadlock.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(argv: list[str]) -> None:
    """Become `argv[2:]`, to be signalled with `argv[1]` once process `argv[0]` is gone.

    Outside Linux there is no such request; there the program only ends with an orderly end of its parent.
    """
    parent, death_signal, program = int(argv[0]), int(argv[1]), argv[2:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) was refused")
        if os.getppid() != parent:
            # The parent died before the request was in place; nobody would ever signal us.
            sys.exit(1)
    # A shell starts background jobs with SIGINT ignored, and that would pass on to the program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(program[0], program)  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main(sys.argv[1:])
