"""Making a commit: the Hub's checks in the Hub's order, one commit at a time per repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import yaml

from gpupod_rehearsal.hub import refusals
from gpupod_rehearsal.hub.history import Commit
from gpupod_rehearsal.hub.limits import HubLimits
from gpupod_rehearsal.hub.objects import Snapshot, StoredFile, lfs_file
from gpupod_rehearsal.hub.payload import CommitPayload
from gpupod_rehearsal.hub.registry import Repository
from gpupod_rehearsal.hub.state import HubState


@contextmanager
def commit_lock(repository: Repository) -> Iterator[None]:
    """Hold a repository for one commit.

    Raises:
        HubRefusedError: 409, another commit holds it.
    """
    if repository.committing:
        raise refusals.commit_in_progress()
    repository.committing = True
    try:
        yield
    finally:
        repository.committing = False


async def make_commit(
    state: HubState, repository: Repository, branch: str, payload: CommitPayload, author: str
) -> Commit:
    """Check and apply one commit; call it with the lock held.

    Raises:
        HubRefusedError: 412 (head moved), 429 (quota), 400 (content, limits), 403 (storage), 404 (branch); in each
            case nothing has changed.
    """
    now = state.clock.now()
    state.commit_quota.check(repository.key, now, state.limits)
    if state.limits.refused_commits_count:
        state.commit_quota.count(repository.key, now)
    if branch not in repository.history.branches:
        raise refusals.revision_not_found(branch)
    head = repository.history.branches[branch]
    if payload.parent is not None and payload.parent != head:
        raise refusals.head_moved()
    before = repository.history.snapshot(head)
    deleted = _deleted_paths(before, payload)
    _check_files(payload, state.limits)
    entries = await _lfs_entries(state, payload)
    _check_room(state, before, deleted, [*payload.files, *entries])
    _check_storage(state, repository, entries)
    for path, data in payload.files.items():
        entries[path] = state.blobs.put_regular(data)
    if not state.limits.refused_commits_count:
        state.commit_quota.count(repository.key, now)
    return repository.history.commit(
        branch,
        title=payload.title,
        description=payload.description,
        author=author,
        at=now,
        changed=entries,
        deleted=deleted,
    )


def front_matter_errors(readme: str) -> list[str]:
    """What is wrong with the YAML block at the top of a README, as `/api/validate-yaml` says it."""
    if not readme.startswith("---\n"):
        return []
    block, closing, _ = readme[4:].partition("\n---")
    if not closing:
        return []
    try:
        metadata = yaml.safe_load(block)
    except yaml.YAMLError as error:
        return [f"Invalid YAML: {error}"]
    if metadata is not None and not isinstance(metadata, dict):
        return ["YAML metadata must be a mapping"]
    return []


def _deleted_paths(before: Snapshot, payload: CommitPayload) -> tuple[str, ...]:
    for path in payload.deleted_files:
        if path not in before:
            raise refusals.HubRefusedError(404, f"File to delete not found: {path}", code="EntryNotFound")
    below = tuple(f"{folder}/" for folder in payload.deleted_folders)
    return tuple(path for path in before if path in payload.deleted_files or (below and path.startswith(below)))


def _check_files(payload: CommitPayload, limits: HubLimits) -> None:
    too_large = [path for path, data in payload.files.items() if len(data) > limits.regular_file_bytes]
    if too_large:
        raise refusals.regular_file_too_large(too_large, limits.regular_file_bytes)
    readme = payload.files.get("README.md")
    if readme is not None and (errors := front_matter_errors(readme.decode("utf-8", "replace"))):
        raise refusals.bad_request("Invalid metadata in README.md. " + " ".join(errors))


async def _lfs_entries(state: HubState, payload: CommitPayload) -> dict[str, StoredFile]:
    entries: dict[str, StoredFile] = {}
    missing: list[str] = []
    for path, (sha256, size) in payload.lfs.items():
        stored = state.blobs.lfs_size(sha256)
        if stored is None:
            stored = await state.xet.materialise(sha256, state.blobs)
        if stored is None or (size is not None and size != stored):
            missing.append(path)
        else:
            entries[path] = lfs_file(sha256, stored)
    if missing:
        raise refusals.lfs_object_missing(missing)
    return entries


def _check_room(state: HubState, before: Snapshot, deleted: tuple[str, ...], added: list[str]) -> None:
    after = (before.keys() - set(deleted)) | set(added)
    _refuse_conflicts(after, added)
    per_directory = Counter(path.rpartition("/")[0] for path in after)
    touched = {path.rpartition("/")[0] for path in added}
    limit = state.limits.files_per_directory
    if full := sorted(directory for directory in touched if per_directory[directory] > limit):
        raise refusals.directory_full(full, limit)
    if len(after) > state.limits.files_per_repository:
        raise refusals.repository_full(len(after), state.limits.files_per_repository)


def _refuse_conflicts(after: set[str], added: list[str]) -> None:
    # Git cannot hold a file and a directory of one name.
    for path in added:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            if "/".join(parts[:depth]) in after:
                raise refusals.bad_request(f"A file is in the way of a directory: {'/'.join(parts[:depth])}")
    parents = {path[:index] for path in after for index, letter in enumerate(path) if letter == "/"}
    for path in added:
        if path in parents:
            raise refusals.bad_request(f"A directory is in the way of a file: {path}")


def _check_storage(state: HubState, repository: Repository, entries: Mapping[str, StoredFile]) -> None:
    # The quota is on LFS bytes: small regular files still pass when it is used up.
    if entries:
        state.refuse_beyond_storage(repository, {entry.sha256 or "": entry.size for entry in entries.values()})
