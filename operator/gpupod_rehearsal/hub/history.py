"""One repository's history: branches, commits with what each changed, and the snapshot at any of them."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from gpupod_rehearsal.hub import refusals
from gpupod_rehearsal.hub.objects import Snapshot, StoredFile, commit_sha1
from gpupod_rehearsal.hub.trees import TreeIndex

# Snapshots are rebuilt from the commits' changes; a few are kept because readers ask for the same head again.
KEPT_SNAPSHOTS = 8


@dataclass(frozen=True)
class Commit:
    """One commit: `title` and `description` as sent, `changed` path to entry, `deleted` paths."""

    oid: str
    parent: str | None
    title: str
    description: str
    author: str
    at: datetime
    changed: Mapping[str, StoredFile]
    deleted: tuple[str, ...] = ()


class History:
    """Branches and commits of one repository, kept in a journal file of JSON lines."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self.commits: dict[str, Commit] = {}
        self.branches: dict[str, str] = {}
        self._snapshots: OrderedDict[str, dict[str, StoredFile]] = OrderedDict()
        # The trees of the newest commit: nearly always the parent of the next one.
        self._trees: tuple[str, TreeIndex] | None = None
        if journal.exists():
            for line in journal.read_text(encoding="utf-8").splitlines():
                self._apply(json.loads(line))

    def commit(
        self,
        branch: str,
        *,
        title: str,
        description: str,
        author: str,
        at: datetime,
        changed: Mapping[str, StoredFile],
        deleted: Iterable[str] = (),
    ) -> Commit:
        """Add a commit on top of `branch`, which appears when it is the first."""
        parent = self.branches.get(branch)
        snapshot = dict(self.snapshot(parent)) if parent else {}
        removed = tuple(deleted)
        for path in removed:
            snapshot.pop(path, None)
        snapshot.update(changed)
        message = f"{title}\n\n{description}" if description else title
        trees = self._trees_of(parent)
        trees.update(changed, removed)
        oid = commit_sha1(trees.root, parent, author, int(at.timestamp()), message)
        commit = Commit(oid, parent, title, description, author, at, dict(changed), removed)
        self._record({"event": "commit", "branch": branch, **_commit_to_json(commit)})
        self._keep(oid, snapshot)
        self._trees = (oid, trees)
        return commit

    def create_branch(self, name: str, oid: str) -> None:
        self._record({"event": "branch", "branch": name, "oid": oid})

    def delete_branch(self, name: str) -> None:
        self._record({"event": "branch-deleted", "branch": name})

    def resolve(self, revision: str) -> str:
        """The commit a branch name, `refs/heads/...` or a full commit id stands for.

        Raises:
            HubRefusedError: 404 RevisionNotFound.
        """
        name = revision.removeprefix("refs/heads/")
        if name in self.branches:
            return self.branches[name]
        if revision in self.commits:
            return revision
        raise refusals.revision_not_found(revision)

    def snapshot(self, oid: str) -> Snapshot:
        """Every file at a commit."""
        if oid in self._snapshots:
            self._snapshots.move_to_end(oid)
            return self._snapshots[oid]
        missing: list[Commit] = []
        cursor: str | None = oid
        while cursor is not None and cursor not in self._snapshots:
            missing.append(self.commits[cursor])
            cursor = self.commits[cursor].parent
        snapshot = dict(self._snapshots[cursor]) if cursor else {}
        for commit in reversed(missing):
            for path in commit.deleted:
                snapshot.pop(path, None)
            snapshot.update(commit.changed)
        self._keep(oid, snapshot)
        return snapshot

    def log(self, oid: str) -> list[Commit]:
        """The commits that lead to `oid`, newest first."""
        found: list[Commit] = []
        cursor: str | None = oid
        while cursor is not None:
            found.append(self.commits[cursor])
            cursor = self.commits[cursor].parent
        return found

    def _trees_of(self, parent: str | None) -> TreeIndex:
        if parent is None:
            return TreeIndex({})
        if self._trees is not None and self._trees[0] == parent:
            return self._trees[1]
        return TreeIndex(self.snapshot(parent))

    def _keep(self, oid: str, snapshot: dict[str, StoredFile]) -> None:
        self._snapshots[oid] = snapshot
        self._snapshots.move_to_end(oid)
        while len(self._snapshots) > KEPT_SNAPSHOTS:
            self._snapshots.popitem(last=False)

    def _record(self, event: dict[str, Any]) -> None:
        with self._journal.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(event) + "\n")
        self._apply(event)

    def _apply(self, event: dict[str, Any]) -> None:
        if event["event"] == "branch-deleted":
            del self.branches[event["branch"]]
            return
        if event["event"] == "commit":
            commit = _commit_from_json(event)
            self.commits[commit.oid] = commit
        self.branches[event["branch"]] = event["oid"]


def _commit_to_json(commit: Commit) -> dict[str, Any]:
    return {
        "oid": commit.oid,
        "parent": commit.parent,
        "title": commit.title,
        "description": commit.description,
        "author": commit.author,
        "at": commit.at.isoformat(),
        "changed": {path: [entry.size, entry.oid, entry.sha256] for path, entry in commit.changed.items()},
        "deleted": list(commit.deleted),
    }


def _commit_from_json(event: dict[str, Any]) -> Commit:
    return Commit(
        oid=event["oid"],
        parent=event["parent"],
        title=event["title"],
        description=event["description"],
        author=event["author"],
        at=datetime.fromisoformat(event["at"]),
        changed={path: StoredFile(*values) for path, values in event["changed"].items()},
        deleted=tuple(event["deleted"]),
    )
