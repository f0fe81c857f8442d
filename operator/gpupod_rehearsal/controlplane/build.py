"""Builds the control plane's programs with Go, tells how long it will take, and leaves nothing half done."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gpupod_rehearsal.controlplane.modules import GoModule
from gpupod_rehearsal.controlplane.process import Abandoned, end, spawn
from gpupod_rehearsal.controlplane.progress import duration

Report = Callable[[str], None]

_TICK_SECONDS = 1.0
# Linking comes after the last package and prints nothing; measured on two cores: 8 to 15 s a program.
_LINK_SECONDS = 12.0
_ERROR_LINES = 25
_SCRATCH_PREFIX = ".build-"

# What users set for their own Go code must not bend ours; and no C compiler is asked for.
_ENVIRONMENT = {"GOFLAGS": "-mod=readonly", "GOWORK": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}


class BuildFailed(RuntimeError):
    """The Go compiler refused. The message holds the end of what it said."""


def build(
    go: Path, module: GoModule, programs: Sequence[str], target: Path, *, report: Report, abandon: threading.Event
) -> None:
    """Build `programs` of `module` and move them into `target`, each one whole or not at all.

    The caller holds the lock of `target`. Raises BuildFailed, or Abandoned once `abandon` is set.
    """
    packages = [module.programs[name] for name in programs]
    what = ", ".join(programs)
    started = time.monotonic()
    _run(go, module, ["mod", "download"], abandon, lambda _: report(f"{what}: fetching Go modules{_since(started)}"))
    stale_only = ["list", "-deps", *_flags(module), "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", *packages]
    counted = _run(go, module, stale_only, abandon, lambda _: report(f"{what}: counting packages{_since(started)}"))
    total = sum(1 for line in counted if line)
    compiling = time.monotonic()

    def forecast(done: int) -> None:
        report(_forecast(what, done, total, time.monotonic() - compiling, len(packages)))

    with tempfile.TemporaryDirectory(prefix=_SCRATCH_PREFIX, dir=target) as scratch:
        # Go's own temporary files are in there, too, so that even a SIGKILL leaves them where we look for leftovers.
        temporary = Path(scratch, "tmp")
        temporary.mkdir()
        command = ["build", "-v", *_flags(module), "-o", f"{scratch}/", *packages]
        _run(go, module, command, abandon, forecast, GOTMPDIR=str(temporary))
        for name in programs:
            # `go build -o DIR/` names a program after its package; etcd's main package is called "server".
            built = Path(scratch) / Path(module.programs[name].removesuffix("/v3")).name
            built.replace(target / name)
    report(f"{what}: built{_since(started)}")


def remove_leftovers(target: Path) -> None:
    """Remove what a killed build left in `target`. The caller holds its lock, so nobody is using it."""
    for leftover in target.glob(f"{_SCRATCH_PREFIX}*"):
        shutil.rmtree(leftover)


def _run(
    go: Path,
    module: GoModule,
    arguments: Sequence[str],
    abandon: threading.Event,
    tick: Callable[[int], None],
    **variables: str,
) -> list[str]:
    """Run `go` to its end and return what it said; `tick` gets the number of lines so far, each second."""
    child = spawn(
        [str(go), *arguments],
        cwd=module.folder,
        env={**os.environ, **_ENVIRONMENT, **variables},
        # On SIGINT, and on no other signal, `go` ends its compilers and removes its work directory.
        death_signal=signal.SIGINT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    lines: list[str] = []
    reader = threading.Thread(target=_collect, args=(child, lines), name="gpupod-go-output", daemon=True)
    reader.start()
    try:
        while True:
            tick(len(lines))
            try:
                child.wait(timeout=_TICK_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if abandon.is_set():
                    raise Abandoned(f"`go {arguments[0]}` was given up") from None
    finally:
        end(child, grace=10, request=signal.SIGINT)
        reader.join()
    if child.returncode != 0:
        said = "\n".join(lines[-_ERROR_LINES:])
        raise BuildFailed(f"`go {' '.join(arguments)}` in {module.folder} ended with code {child.returncode}:\n{said}")
    return lines


def _collect(child: subprocess.Popen[str], lines: list[str]) -> None:
    if child.stdout is None:
        return
    with child.stdout:
        for line in child.stdout:
            lines.append(line.rstrip("\n"))  # noqa: PERF401 - the number of lines is watched while it grows


def _forecast(what: str, done: int, total: int, elapsed: float, programs: int) -> str:
    done = min(done, total)
    line = f"Building {what} (once; later runs use the cache): {done} of {total} packages, {duration(elapsed)} so far"
    if done >= total:
        return f"{line}, linking"
    # Before a tenth is done the first, small packages would promise too much.
    if done * 10 < total:
        return line
    left = elapsed / done * (total - done) + _LINK_SECONDS * programs
    return f"{line}, about {duration(left)} left"


def _since(started: float) -> str:
    return f" ({duration(time.monotonic() - started)})"


def _flags(module: GoModule) -> list[str]:
    return ["-trimpath", "-buildvcs=false", "-ldflags", module.link_flags]
