"""Where an API key comes from. A key's value leaves here for one purpose: the `Authorization` header."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gpupod_operator.core.provider import Failure
from gpupod_operator.ports import ProviderError

# Enough to tell keys apart, far too little to guess one.
FINGERPRINT_DIGITS = 12

_Version = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key. `fingerprint` is the first 12 hex digits of its SHA-256; the value is in no representation."""

    value: str = field(repr=False)
    fingerprint: str

    @classmethod
    def parse(cls, data: bytes, origin: str) -> Self:
        """The key in a file's or Secret's bytes, without surrounding white space.

        Raises:
            ProviderError: UNAUTHORIZED, for what cannot be a key; the message names the origin and no character of it.
        """
        text = data.decode("ascii", "replace").strip()
        if not text:
            raise ProviderError(Failure.UNAUTHORIZED, f"the RunPod key {origin} is empty")
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ProviderError(
                Failure.UNAUTHORIZED,
                f"the RunPod key {origin} holds characters that no key has (a space or a line break, for example)",
            )
        return cls(text, hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_DIGITS])


class KeySource:
    """A key that may be replaced while we run: given bytes, or a mounted file that is read again when it changes."""

    def __init__(self, *, path: Path | None = None, key: ApiKey | None = None) -> None:
        if (path is None) == (key is None):
            raise ValueError("a key comes from a file or from bytes")
        self._path = path
        self._key = key
        self._version: _Version | None = None
        self.problem: str | None = None
        """Why the file cannot be read now; the last key that it held is used meanwhile."""

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """A mounted Secret's file. Kubernetes replaces it by a symbolic link, so a new inode is a new key."""
        return cls(path=path)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The bytes of a Secret. Raises ProviderError as `ApiKey.parse`."""
        return cls(key=ApiKey.parse(data, "in the Secret"))

    @classmethod
    def of(cls, key: ApiKey) -> Self:
        """Exactly this key, for ever."""
        return cls(key=key)

    def current(self) -> ApiKey:
        """The key as of now.

        Raises:
            ProviderError: UNAUTHORIZED when there is none: an unreadable file that was never read, or no key in it.
        """
        if self._path is not None:
            self._refresh(self._path)
        if self._key is None:
            raise ProviderError(Failure.UNAUTHORIZED, self.problem or "there is no RunPod key")
        return self._key

    def _refresh(self, path: Path) -> None:
        try:
            seen = path.stat()
            version = (seen.st_mtime_ns, seen.st_ino, seen.st_size, seen.st_dev)
            if version == self._version and self.problem is None:
                return
            self._key = ApiKey.parse(path.read_bytes(), f"file {path}")
        except OSError as error:
            # While a mount is swapped, or after its Secret is gone: the last key carries on a teardown.
            self.problem = f"the RunPod key file {path} cannot be read ({error.strerror})"
            return
        except ProviderError as error:
            self.problem = error.detail
            return
        self._version, self.problem = version, None

    def __repr__(self) -> str:
        origin = f"file {self._path}" if self._path is not None else "bytes"
        return f"KeySource({origin}, fingerprint={self._key.fingerprint if self._key is not None else None})"
