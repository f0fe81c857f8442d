"""Git and LFS object identities, computed as the Hub computes them.

A file on the Hub is a git blob (identity: git's sha1) or an LFS object (identity: sha256) with a git blob that holds
the pointer text. Directory identities are those of real git tree objects, so that an equal tree has an equal id.
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
    return _git_object_sha1("blob", data)


def lfs_pointer(sha256: str, size: int) -> bytes:
    """The text that git stores instead of an LFS object's bytes."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def lfs_file(sha256: str, size: int) -> StoredFile:
    """The entry of an LFS object of `size` bytes."""
    return StoredFile(size=size, oid=git_blob_sha1(lfs_pointer(sha256, size)), sha256=sha256)


def regular_file(data: bytes) -> StoredFile:
    """The entry of a file that is stored as a plain git blob."""
    return StoredFile(size=len(data), oid=git_blob_sha1(data))


def directories(snapshot: Snapshot) -> dict[str, str]:
    """Git tree ids by directory path; the root is ''. Costs one pass over the snapshot."""
    children: dict[str, dict[str, tuple[str, str]]] = {"": {}}
    for path, entry in snapshot.items():
        parent, _, name = path.rpartition("/")
        _add_parents(children, parent)
        children[parent][name] = ("100644", entry.oid)
    oids: dict[str, str] = {}
    for directory in sorted(children, key=lambda path: -_depth(path)):
        oid = _tree_sha1(children[directory])
        oids[directory] = oid
        if directory:
            parent, _, name = directory.rpartition("/")
            children[parent][name] = ("40000", oid)
    return oids


def commit_sha1(tree: str, parent: str | None, author: str, epoch_seconds: int, message: str) -> str:
    """Git's identity of a commit object with these contents (hex)."""
    lines = [f"tree {tree}"]
    if parent:
        lines.append(f"parent {parent}")
    signature = f"{author} <{author}@users.noreply.huggingface.co> {epoch_seconds} +0000"
    lines += [f"author {signature}", f"committer {signature}", "", message]
    return _git_object_sha1("commit", "\n".join(lines).encode())


def _add_parents(children: dict[str, dict[str, tuple[str, str]]], directory: str) -> None:
    while directory not in children:
        children[directory] = {}
        directory = directory.rpartition("/")[0]


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0


def _tree_sha1(entries: Mapping[str, tuple[str, str]]) -> str:
    # Git sorts a directory as if its name ended with a slash.
    ordered = sorted(entries.items(), key=lambda item: (item[0] + "/" if item[1][0] == "40000" else item[0]).encode())
    body = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(oid) for name, (mode, oid) in ordered)
    return _git_object_sha1("tree", body)


def _git_object_sha1(kind: str, data: bytes) -> str:
    # Git's object ids are sha1 by definition; nothing here relies on sha1 against an attacker.
    return hashlib.sha1(f"{kind} {len(data)}".encode() + b"\0" + data, usedforsecurity=False).hexdigest()
