"""Git tree objects of a revision, kept up to date change by change: a commit rehashes only the folders it touches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpupod_rehearsal.hub.objects import Snapshot, StoredFile, git_object_sha1

_FILE, _FOLDER = "100644", "40000"


class TreeIndex:
    """The tree id of every directory, by path; the root is ''."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._children: dict[str, dict[str, tuple[str, str]]] = {"": {}}
        self.oids: dict[str, str] = {}
        self.update(snapshot, ())

    @property
    def root(self) -> str:
        """The id of the root tree."""
        return self.oids[""]

    def update(self, changed: Mapping[str, StoredFile], deleted: Iterable[str]) -> None:
        """Apply one commit's changes: first the deletions, then the additions."""
        touched = {""}
        for path in deleted:
            folder, _, name = path.rpartition("/")
            self._children.get(folder, {}).pop(name, None)
            touched.add(folder)
        for path, entry in changed.items():
            folder, _, name = path.rpartition("/")
            self._children.setdefault(folder, {})[name] = (_FILE, entry.oid)
            touched.add(folder)
        self._rehash(touched)

    def _rehash(self, touched: set[str]) -> None:
        folders = {parent for folder in touched for parent in _with_parents(folder)}
        # Deepest first: a folder's id is part of its parent.
        for folder in sorted(folders, key=lambda path: -path.count("/") - bool(path)):
            children = self._children.setdefault(folder, {})
            parent, _, name = folder.rpartition("/")
            if folder and not children:
                # Git knows no empty directories.
                del self._children[folder]
                self.oids.pop(folder, None)
                self._children.get(parent, {}).pop(name, None)
                continue
            self.oids[folder] = _tree_sha1(children)
            if folder:
                self._children.setdefault(parent, {})[name] = (_FOLDER, self.oids[folder])


def directories(snapshot: Snapshot) -> dict[str, str]:
    """Tree ids by directory path of one snapshot, or of all the files below some directory."""
    return TreeIndex(snapshot).oids


def _with_parents(folder: str) -> Iterable[str]:
    yield folder
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def _tree_sha1(entries: Mapping[str, tuple[str, str]]) -> str:
    # Git sorts a directory as if its name ended with a slash.
    ordered = sorted(entries.items(), key=lambda item: (item[0] + "/" if item[1][0] == _FOLDER else item[0]).encode())
    body = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(oid) for name, (mode, oid) in ordered)
    return git_object_sha1("tree", body)
