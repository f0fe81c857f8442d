"""Builds the root directory of a rented pod and hands over to its init; run by file path, standard library only.

Runs as PID 1 of fresh mount, PID, UTS and IPC namespaces. One argument: the JSON file that `NamespaceHost` wrote. On
failure it answers `{"ok": false, "error": ...}` on stdout and exits.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import sys
from pathlib import Path

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_NOATIME, _MS_NODIRATIME, _MS_BIND, _MS_REC, _MS_PRIVATE = 32, 1024, 2048, 4096, 16384, 1 << 18
_MS_RELATIME = 1 << 21
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_ETC_NAMES = (
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "login.defs",
    "nsswitch.conf",
    "pam.d",
    "profile",
    "protocols",
    "resolv.conf",
    "security",
    "services",
    "ssl",
    "terminfo",
    "timezone",
)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Build, enter and become the pod."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        socket.sethostname(spec["hostname"])
        _build_root(spec)
        _write_files(spec)
    except OSError as error:
        _reply({"ok": False, "error": f"{error}"})
        raise SystemExit(1) from error
    os.execve(spec["init"][0], spec["init"], spec["init_env"])  # noqa: S606 - written by the host that starts this pod


def _build_root(spec: dict[str, object]) -> None:
    root = Path(str(spec["root"]))
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", str(root), "tmpfs", _MS_NODEV, "mode=0755")
    for name in (
        "dev",
        "etc",
        "home",
        "mnt",
        "proc",
        "root",
        "run",
        "tmp",
        "var/log",
        "var/tmp",
        "var/empty",
        "run/sshd",
        "old",
    ):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "root").chmod(0o700)
    for path in map(str, _listed(spec["read_only"])):
        _bind_read_only(Path(path), root)
    for name in _ETC_NAMES:
        _copy_etc(Path("/etc") / name, root)
    _make_devices(root)
    _mount("proc", str(root / "proc"), "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    for source, target in _pairs(spec["binds"]):
        inside = root / target.lstrip("/")
        inside.mkdir(parents=True, exist_ok=True)
        _mount(source, str(inside), None, _MS_BIND | _MS_REC)
    os.chdir(root)
    if _libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"old") != 0:
        _fail("pivot_root")
    os.chdir("/")
    if _libc.umount2(b"/old", _MNT_DETACH) != 0:
        _fail("umount2")
    Path("/old").rmdir()


def _make_devices(root: Path) -> None:
    _mount("tmpfs", str(root / "dev"), "tmpfs", _MS_NOSUID | _MS_NOEXEC, "mode=0755")
    for name in _DEVICES:
        node = root / "dev" / name
        node.touch()
        _mount(f"/dev/{name}", str(node), None, _MS_BIND)
    for name in ("shm", "pts"):
        (root / "dev" / name).mkdir()
    _mount("tmpfs", str(root / "dev/shm"), "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777")
    _mount("devpts", str(root / "dev/pts"), "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    (root / "dev/ptmx").symlink_to("pts/ptmx")
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        (root / "dev" / name).symlink_to(target if name == "fd" else f"/proc/self/{target}")


def _bind_read_only(path: Path, root: Path) -> None:
    inside = root / str(path).lstrip("/")
    if path.is_symlink():
        inside.parent.mkdir(parents=True, exist_ok=True)
        if not inside.exists():
            inside.symlink_to(path.readlink())
        return
    if not path.is_dir():
        return
    inside.mkdir(parents=True, exist_ok=True)
    _mount(str(path), str(inside), None, _MS_BIND | _MS_REC)
    kept = os.statvfs(path).f_flag & (_MS_NOSUID | _MS_NODEV | _MS_NOEXEC | _MS_NOATIME | _MS_NODIRATIME)
    relatime = _MS_RELATIME if os.statvfs(path).f_flag & 4096 else 0
    _mount(None, str(inside), None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | kept | relatime)


def _copy_etc(path: Path, root: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        _bind_read_only(path, root)
    elif path.exists():
        shutil.copy(path, root / "etc" / path.name)


def _write_files(spec: dict[str, object]) -> None:
    """Files given as [path, mode, text]; the paths are inside the pod."""
    files = spec["files"]
    if not isinstance(files, list):
        raise TypeError("files is a list")
    for path, mode, text in files:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.parent.name == ".ssh":
            target.parent.chmod(0o700)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _pairs(value: object) -> list[tuple[str, str]]:
    return [(str(source), str(target)) for source, target in value] if isinstance(value, list) else []


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    parts = [None if part is None else part.encode() for part in (source, target, kind, data)]
    if _libc.mount(parts[0], parts[1], parts[2], ctypes.c_ulong(flags), parts[3]) != 0:
        _fail(f"mount {kind or 'bind'} on {target}")


def _fail(what: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, f"{what}: {os.strerror(number)}")


def _reply(answer: dict[str, object]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
