"""The repositories that exist, by kind and id, kept below the working directory."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gpupod_rehearsal.hub.blobs import BlobStore
from gpupod_rehearsal.hub.gitpatterns import DEFAULT_GITATTRIBUTES
from gpupod_rehearsal.hub.history import History

KINDS = ("model", "dataset", "space")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


@dataclass
class Repository:
    """A repository: `kind` (model, dataset, space), `repo_id` (namespace/name), visibility and history."""

    kind: str
    repo_id: str
    private: bool
    history: History = field(repr=False)
    committing: bool = False

    @property
    def key(self) -> str:
        """Unique over all kinds, in the form the Hub uses in its urls."""
        return f"{self.kind}s/{self.repo_id}"

    @property
    def namespace(self) -> str:
        return self.repo_id.partition("/")[0]

    @property
    def url_path(self) -> str:
        """The path of the repository's page: models have no prefix."""
        return self.repo_id if self.kind == "model" else self.key


class RepositoryExistsError(ValueError):
    """There is a repository of that kind and id."""


class Registry:
    """All repositories; what is on disk is read at start."""

    def __init__(self, root: Path, blobs: BlobStore) -> None:
        self._root = root
        self._blobs = blobs
        self._repositories: dict[str, Repository] = {}
        for settings_file in sorted(root.glob("*/*/*/settings.json")):
            settings = json.loads(settings_file.read_text(encoding="utf-8"))
            history = History(settings_file.parent / "journal.jsonl")
            repository = Repository(settings["kind"], settings["repo_id"], settings["private"], history)
            self._repositories[repository.key] = repository

    def __iter__(self) -> Iterator[Repository]:
        return iter(self._repositories.values())

    def find(self, kind: str, repo_id: str) -> Repository | None:
        return self._repositories.get(f"{kind}s/{repo_id}")

    def create(self, kind: str, repo_id: str, *, private: bool, author: str, at: datetime) -> Repository:
        """Create a repository with the initial commit the Hub makes (`.gitattributes`).

        Raises:
            RepositoryExistsError: it is there already.
            ValueError: kind or id is malformed.
        """
        namespace, _, name = repo_id.partition("/")
        if kind not in KINDS or not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
            raise ValueError(f"not a repository: {kind} {repo_id}")
        if self.find(kind, repo_id):
            raise RepositoryExistsError(f"{kind} {repo_id}")
        folder = self._root / f"{kind}s" / namespace / name
        folder.mkdir(parents=True)
        settings = {"kind": kind, "repo_id": repo_id, "private": private}
        (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        repository = Repository(kind, repo_id, private, History(folder / "journal.jsonl"))
        attributes = self._blobs.put_regular(DEFAULT_GITATTRIBUTES.encode())
        repository.history.commit(
            "main", title="initial commit", description="", author=author, at=at, changed={".gitattributes": attributes}
        )
        self._repositories[repository.key] = repository
        return repository

    def delete(self, repository: Repository) -> None:
        """Remove a repository and its history. Blobs stay: another one may share them."""
        del self._repositories[repository.key]
        shutil.rmtree(self._root / repository.key)

    def stored_lfs_bytes(self, namespace: str, *, private: bool) -> int:
        """LFS bytes a namespace stores in repositories of that visibility, heads only, each object once."""
        sizes: dict[str, int] = {}
        for repository in self:
            if repository.namespace != namespace or repository.private != private:
                continue
            for head in repository.history.branches.values():
                for entry in repository.history.snapshot(head).values():
                    if entry.sha256:
                        sizes[entry.sha256] = entry.size
        return sum(sizes.values())
