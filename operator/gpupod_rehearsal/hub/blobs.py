"""The bytes behind the revisions: plain git blobs by sha1, LFS objects by sha256, all as files in one folder."""

from __future__ import annotations

import hashlib
from pathlib import Path
from uuid import uuid4

from gpupod_rehearsal.hub.objects import StoredFile, git_blob_sha1, lfs_file, regular_file

READ_CHUNK = 1024 * 1024


class DigestMismatchError(ValueError):
    """The bytes that arrived are not the ones that were announced."""


class BlobStore:
    """Content-addressed files below `root`. Writing is atomic: a name appears only with its whole content."""

    def __init__(self, root: Path) -> None:
        self._regular = root / "regular"
        self._lfs = root / "lfs"
        self._incoming = root / "incoming"
        for folder in (self._regular, self._lfs, self._incoming):
            folder.mkdir(parents=True, exist_ok=True)

    def put_regular(self, data: bytes) -> StoredFile:
        """Store a plain git blob."""
        entry = regular_file(data)
        self._store(data, self._place(self._regular, entry.oid))
        return entry

    def put_lfs(self, data: bytes) -> StoredFile:
        """Store an LFS object."""
        sha256 = hashlib.sha256(data).hexdigest()
        self._store(data, self._place(self._lfs, sha256))
        return lfs_file(sha256, len(data))

    def incoming_file(self) -> Path:
        """A new name for bytes on their way in; finish with `adopt_lfs`."""
        return self._incoming / uuid4().hex

    def adopt_lfs(self, incoming: Path, sha256: str) -> None:
        """Turn a finished incoming file into the LFS object `sha256`.

        Raises:
            DigestMismatchError: its content hashes to something else; the file is removed.
        """
        digest = hashlib.sha256()
        with incoming.open("rb") as stream:
            while chunk := stream.read(READ_CHUNK):
                digest.update(chunk)
        if digest.hexdigest() != sha256:
            incoming.unlink()
            raise DigestMismatchError(f"expected sha256 {sha256}, got {digest.hexdigest()}")
        self._publish(incoming, self._place(self._lfs, sha256))

    def lfs_size(self, sha256: str) -> int | None:
        """Size in bytes of a stored LFS object, None when there is none."""
        try:
            return self._place(self._lfs, sha256).stat().st_size
        except FileNotFoundError:
            return None

    def path(self, entry: StoredFile) -> Path:
        """Where the content of an entry is stored."""
        if entry.sha256 is not None:
            return self._place(self._lfs, entry.sha256)
        return self._place(self._regular, entry.oid)

    def read(self, entry: StoredFile) -> bytes:
        """The content, whole."""
        return self.path(entry).read_bytes()

    def corrupt(self, entry: StoredFile, data: bytes) -> None:
        """Replace the stored bytes behind an unchanged identity: what a listing cannot show and a read back can."""
        self._publish(self._write_incoming(data), self.path(entry))

    def holds(self, entry: StoredFile) -> bool:
        """Whether the stored bytes still are what the entry's identity says."""
        data = self.read(entry)
        if entry.sha256 is not None:
            return hashlib.sha256(data).hexdigest() == entry.sha256
        return git_blob_sha1(data) == entry.oid

    def _store(self, data: bytes, target: Path) -> None:
        # One content, one file: equal files of many cells are written once.
        if not target.exists():
            self._publish(self._write_incoming(data), target)

    def _write_incoming(self, data: bytes) -> Path:
        incoming = self.incoming_file()
        incoming.write_bytes(data)
        return incoming

    @staticmethod
    def _place(folder: Path, digest: str) -> Path:
        return folder / digest[:2] / digest

    @staticmethod
    def _publish(incoming: Path, target: Path) -> None:
        target.parent.mkdir(exist_ok=True)
        incoming.replace(target)
