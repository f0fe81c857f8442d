"""A repository as an in-process test sees it: bytes, commits, and the hand of another person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpupod_rehearsal.hub.gitpatterns import is_lfs
from gpupod_rehearsal.hub.history import Commit
from gpupod_rehearsal.hub.objects import Snapshot
from gpupod_rehearsal.hub.registry import Repository
from gpupod_rehearsal.hub.state import HubState


class RepositoryView:
    """Reads and writes past the Hub's API: no token, no quota, no fault."""

    def __init__(self, state: HubState, repository: Repository) -> None:
        self._state = state
        self._repository = repository

    def head(self, revision: str = "main") -> str:
        """The commit id of a branch."""
        return self._repository.history.resolve(revision)

    def entries(self, revision: str = "main") -> Snapshot:
        """Every file with its identities, as a listing would show it."""
        return self._repository.history.snapshot(self.head(revision))

    def files(self, prefix: str = "", revision: str = "main") -> dict[str, bytes]:
        """The stored bytes of every file whose path starts with `prefix`."""
        entries = self.entries(revision)
        return {path: self._state.blobs.read(entry) for path, entry in entries.items() if path.startswith(prefix)}

    def read(self, path: str, revision: str = "main") -> bytes:
        """The stored bytes of one file; KeyError when it is not there."""
        return self._state.blobs.read(self.entries(revision)[path])

    def commits(self, revision: str = "main") -> list[Commit]:
        """Newest first, the initial commit of the repository included."""
        return self._repository.history.log(self.head(revision))

    def put(
        self,
        files: Mapping[str, bytes],
        *,
        title: str = "by another person",
        description: str = "",
        delete: Iterable[str] = (),
        lfs: bool | None = None,
        branch: str = "main",
    ) -> Commit:
        """Commit as another person would. `lfs` None follows `.gitattributes` and the size limit."""
        attributes = self.read(".gitattributes", branch).decode()
        changed = {}
        for path, data in files.items():
            large = len(data) > self._state.limits.regular_file_bytes or is_lfs(path, attributes)
            as_lfs = large if lfs is None else lfs
            changed[path] = self._state.blobs.put_lfs(data) if as_lfs else self._state.blobs.put_regular(data)
        return self._repository.history.commit(
            branch,
            title=title,
            description=description,
            author="another-person",
            at=self._state.clock.now(),
            changed=changed,
            deleted=delete,
        )

    def corrupt(self, path: str, data: bytes) -> None:
        """Replace the stored bytes behind an unchanged listing; only a read back can tell."""
        self._state.blobs.corrupt(self.entries()[path], data)

    def make_private(self) -> None:
        """Hide the repository from everyone without a role in its namespace (until a restart)."""
        self._repository.private = True
