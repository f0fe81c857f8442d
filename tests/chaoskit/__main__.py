"""Play one schedule again and print its story: `python -m chaoskit create --at 12 --fault list-lag`."""

from __future__ import annotations

import argparse
import sys

from chaoskit.operations import OPERATIONS
from chaoskit.points import Mishap
from chaoskit.schedule import Fault, Schedule, play


def _mishap(text: str) -> tuple[int, Mishap]:
    point, _, kind = text.partition(":")
    return int(point), Mishap(kind or "kill")


def main() -> int:
    """0: every promise held."""
    parser = argparse.ArgumentParser(prog="python -m chaoskit", description=__doc__)
    parser.add_argument("operation", choices=sorted(OPERATIONS))
    parser.add_argument("--at", type=_mishap, action="append", default=[], help="POINT or POINT:MISHAP (kill)")
    parser.add_argument("--fault", type=Fault.of, action="append", default=[], help="NAME or NAME@METHOD:/path")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skew", type=float, default=0.0, help="seconds by which the operator's clock is ahead")
    parser.add_argument("--jump", type=float, default=0.0, help="seconds by which it jumps on the way")
    parser.add_argument("--points", action="store_true", help="also list all crash points")
    given = parser.parse_args()
    played = play(Schedule(given.operation, dict(given.at), tuple(given.fault), given.seed, given.skew, given.jump))
    if given.points:
        print("\n".join(f"{number} {name}" for number, name in enumerate(played.points)))
    print(played)
    print(f"deaths {played.deaths}, points {len(played.points)}, cost ${played.cost:.4f}")
    return 1 if played.broken else 0


if __name__ == "__main__":
    sys.exit(main())
