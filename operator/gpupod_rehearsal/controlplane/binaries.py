"""Where the control plane's programs come from: KUBEBUILDER_ASSETS, our cache, or a build.

A cluster that the caller already has (a kubeconfig) comes before all of these and needs no program.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpupod_rehearsal.controlplane.build import Report, build, remove_leftovers
from gpupod_rehearsal.controlplane.modules import MODULES, fingerprint
from gpupod_rehearsal.controlplane.process import Abandoned
from gpupod_rehearsal.controlplane.toolchain import find_go

_LOCK_POLL_SECONDS = 0.5


def ensure_programs(names: Iterable[str], *, report: Report, abandon: threading.Event | None = None) -> dict[str, Path]:
    """Paths of the programs `names` (`etcd`, `kube-apiserver`, `kube-controller-manager`, `kubectl`).

    What neither KUBEBUILDER_ASSETS nor the cache holds is built, under a lock, so that runs at the same time share one
    build. Raises NoToolchain, BuildFailed, or Abandoned once `abandon` is set.
    """
    wanted = list(dict.fromkeys(names))
    known = {name for module in MODULES for name in module.programs}
    if unknown := set(wanted) - known:
        raise ValueError(f"not a program of the control plane: {', '.join(sorted(unknown))}")
    found = _assets(wanted)
    cache = cache_folder()
    found |= _present(cache, [name for name in wanted if name not in found])
    missing = [name for name in wanted if name not in found]
    if missing:
        found |= _build_missing(missing, cache, report, abandon or threading.Event())
    return {name: found[name] for name in wanted}


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/gpupod/controlplane/<fingerprint of the pinned modules>`."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "gpupod" / "controlplane" / fingerprint()


def _assets(names: Iterable[str]) -> dict[str, Path]:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    return _present(Path(folder).absolute(), names) if folder else {}


def _present(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    return {name: folder / name for name in names if os.access(folder / name, os.X_OK)}


def _build_missing(names: list[str], cache: Path, report: Report, abandon: threading.Event) -> dict[str, Path]:
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / ".lock", report, abandon):
        remove_leftovers(cache)
        # Another run may have built them while we waited.
        still_missing = [name for name in names if name not in _present(cache, names)]
        for module in MODULES:
            programs = [name for name in still_missing if name in module.programs]
            if programs:
                build(find_go(module.go_version), module, programs, cache, report=report, abandon=abandon)
    return _present(cache, names)


@contextlib.contextmanager
def _locked(path: Path, report: Report, abandon: threading.Event) -> Iterator[None]:
    # flock: the kernel drops it with its holder, so a killed build never leaves a lock behind.
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                report("Waiting for another run that is building the control plane")
                if abandon.wait(_LOCK_POLL_SECONDS):
                    raise Abandoned("waiting for the build of another run was given up") from None
        yield
