"""Runs the operator under a profiler: `profiled.py cpu|memory OUTPUT run ...`. Writes OUTPUT when the operator ends."""

import atexit
import cProfile
import sys
import tracemalloc
from pathlib import Path


def main() -> None:
    kind, output = sys.argv[1], Path(sys.argv[2])
    sys.argv[1:] = sys.argv[3:]
    if kind == "memory":
        tracemalloc.start(1)
        atexit.register(lambda: tracemalloc.take_snapshot().dump(str(output)))
    from gpupod_operator.cli.main import main as operator

    if kind != "cpu":
        operator()
        return
    profile = cProfile.Profile()
    try:
        profile.runcall(operator)
    finally:
        profile.dump_stats(output)


if __name__ == "__main__":
    main()
