"""Git and LFS object identities, computed as the Hub computes them.

A file on the Hub is a git blob (identity: git's sha1) or an LFS object (identity: sha256) with a git blob that holds
the pointer text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a revision: `size` in bytes of the content, `oid` of its git blob, `sha256` only for LFS files."""

    size: int
    oid: str
    sha256: str | None = None

    @property
    def content_id(self) -> str:
        """What the Hub calls the etag of the content: sha256 of an LFS file, git sha1 of a regular one."""
        return self.sha256 or self.oid


Snapshot = Mapping[str, StoredFile]


def git_blob_sha1(data: bytes) -> str:
    """Git's identity of a regular file's content (hex)."""
    return git_object_sha1("blob", data)


def lfs_pointer(sha256: str, size: int) -> bytes:
    """The text that git stores instead of an LFS object's bytes."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def lfs_file(sha256: str, size: int) -> StoredFile:
    """The entry of an LFS object of `size` bytes."""
    return StoredFile(size=size, oid=git_blob_sha1(lfs_pointer(sha256, size)), sha256=sha256)


def regular_file(data: bytes) -> StoredFile:
    """The entry of a file that is stored as a plain git blob."""
    return StoredFile(size=len(data), oid=git_blob_sha1(data))


def commit_sha1(tree: str, parent: str | None, author: str, epoch_seconds: int, message: str) -> str:
    """Git's identity of a commit object with these contents (hex)."""
    lines = [f"tree {tree}"]
    if parent:
        lines.append(f"parent {parent}")
    signature = f"{author} <{author}@users.noreply.huggingface.co> {epoch_seconds} +0000"
    lines += [f"author {signature}", f"committer {signature}", "", message]
    return git_object_sha1("commit", "\n".join(lines).encode())


def git_object_sha1(kind: str, data: bytes) -> str:
    """Git's identity (hex) of an object of a kind: blob, tree or commit."""
    # Git's object ids are sha1 by definition; nothing here relies on sha1 against an attacker.
    return hashlib.sha1(f"{kind} {len(data)}".encode() + b"\0" + data, usedforsecurity=False).hexdigest()
