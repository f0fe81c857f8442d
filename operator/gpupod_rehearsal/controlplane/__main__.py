"""`python -m gpupod_rehearsal.controlplane [PROGRAM...]`: build or find the control plane, and print the paths."""

import argparse
import sys

from gpupod_rehearsal.controlplane.binaries import ensure_programs
from gpupod_rehearsal.controlplane.build import BuildFailed
from gpupod_rehearsal.controlplane.modules import MODULES
from gpupod_rehearsal.controlplane.progress import ProgressLine
from gpupod_rehearsal.controlplane.toolchain import NoToolchain


def main() -> int:
    """Exit code 0 with one path a line on stdout; 1 with the reason on stderr; 130 after Ctrl-C."""
    known = [name for module in MODULES for name in module.programs]
    parser = argparse.ArgumentParser(prog="python -m gpupod_rehearsal.controlplane", description=__doc__)
    parser.add_argument("program", nargs="*", metavar="PROGRAM", help=f"one of {', '.join(known)}")
    names = parser.parse_args().program or ["etcd", "kube-apiserver"]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"not a program of the control plane: {', '.join(unknown)}")
    line = ProgressLine()
    try:
        programs = ensure_programs(names, report=line)
    except (BuildFailed, NoToolchain) as error:
        line.close()
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        line.close()
        return 130
    line.close()
    for path in programs.values():
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
