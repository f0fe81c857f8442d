"""Single instances by flock: the lock ends with its holder, however that ends."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

_UNSUPPORTED = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}


class Lock:
    """An exclusive lock on a file. Where its file system has no flock (some network volumes), one in memory is used."""

    def __init__(self, path: Path, fallback: Path) -> None:
        self._path = path
        self._fallback = fallback
        self._fd: int | None = None

    def acquire(self) -> bool:
        """Try once; whether it is held now."""
        for path in (self._path, self._fallback):
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                return False
            except OSError as error:
                os.close(fd)
                if error.errno not in _UNSUPPORTED:
                    raise
                continue
            self._fd = fd
            return True
        raise OSError(errno.ENOTSUP, f"no lock is possible on {self._path} nor on {self._fallback}")

    def adopt(self, fd: int) -> None:
        """Take over a descriptor that holds the lock already (from the process this one was started by)."""
        os.set_inheritable(fd, False)
        self._fd = fd

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
