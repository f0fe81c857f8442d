"""The Hub as the agent uses it: list, read the manifest, find a commit, make one commit.

Imports huggingface_hub, whose settings (HF_ENDPOINT, HF_HUB_DISABLE_XET, HF_HOME) are read at import: the environment
must be complete before this module is imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from huggingface_hub import CommitOperationAdd, HfApi, RepoFile, hf_hub_url, set_client_factory, utils

from gpupod_cell import manifest as manifests
from gpupod_cell.answers import refusal_of
from gpupod_cell.orders import Destination
from gpupod_cell.walk import Walk

# The package exports lazily, in a way that type checkers do not follow; httpx is httpx2 from version 2.0 on.
_client_of_hub: Any = utils

CONNECT_SECONDS = 15.0
READ_SECONDS = 180.0
"""Longer than the Hub's own limit for a commit (60 to 120 s), so that we do not give up on one that is being made."""

COMMIT_PAGES = 4
"""Pages of the commit list in which a trailer is looked for (50 commits each)."""


@dataclass(frozen=True)
class Listed:
    """A file as the Hub lists it; `sha256` only for LFS files."""

    size: int
    blob_id: str
    sha256: str | None

    def holds(self, file: manifests.Hashed) -> bool:
        """Whether the Hub has exactly these bytes."""
        if self.size != file.size:
            return False
        return self.sha256 == file.sha256 if self.sha256 is not None else self.blob_id == file.git_sha1


@dataclass(frozen=True)
class Commit:
    """A commit of ours; `at` as RFC 3339."""

    oid: str
    at: str | None


class Hub:
    """One destination with one token. Every method raises Refusal and nothing else of the network."""

    def __init__(self, destination: Destination, token: str, endpoint: str | None) -> None:
        set_client_factory(_client)
        self._api = HfApi(endpoint=endpoint, token=token)
        self._token = token
        self._to = destination

    def listing(self) -> dict[str, Listed]:
        """Everything below the destination's path, by path relative to it; empty when there is nothing."""
        prefix = f"{self._to.path}/" if self._to.path else ""
        try:
            entries = self._api.list_repo_tree(
                self._to.repo,
                self._to.path or None,
                recursive=True,
                revision=self._to.revision,
                repo_type=self._to.repo_type,
            )
            return {
                entry.path[len(prefix) :]: Listed(entry.size, entry.blob_id, entry.lfs.sha256 if entry.lfs else None)
                for entry in entries
                if isinstance(entry, RepoFile) and entry.path.startswith(prefix)
            }
        except Exception as error:
            if _entry_missing(error):
                return {}
            raise refusal_of(error) from error

    def manifest(self) -> bytes:
        """The bytes of the listed manifest."""
        path = f"{self._to.path}/{manifests.PATH}".lstrip("/")
        url = hf_hub_url(
            self._to.repo,
            path,
            repo_type=self._to.repo_type,
            revision=self._to.revision,
            endpoint=self._api.endpoint,
        )
        return bytes(self._get(url).content)

    def find_commit(self, uid: str, digest: str) -> Commit | None:
        """The newest commit whose trailers name the cell and the manifest, None when it is not among the last 200."""
        url = f"{self._api.endpoint}/api/{self._to.repo_type}s/{self._to.repo}/commits/{_quote(self._to.revision)}"
        for _ in range(COMMIT_PAGES):
            page = self._get(url)
            for entry in page.json():
                trailers = _trailers(str(entry.get("message", "")))
                if trailers.get("SweepCell-Uid") == uid and trailers.get("SweepCell-Manifest") == digest:
                    return Commit(str(entry["id"]), entry.get("date"))
            url = page.links.get("next", {}).get("url", "")
            if not url:
                break
        return None

    def commit(self, seen: Walk, taken: manifests.Manifest, *, title: str, description: str) -> str:
        """All files and the manifest in ONE commit; its oid.

        No parent commit: prefixes are disjoint, so it would only turn other people's commits into conflicts.
        """
        prefix = f"{self._to.path}/" if self._to.path else ""
        operations: list[Any] = [
            CommitOperationAdd(path_in_repo=prefix + found.path, path_or_fileobj=str(found.source))
            for found in seen.files
        ]
        operations.append(CommitOperationAdd(path_in_repo=prefix + manifests.PATH, path_or_fileobj=taken.data))
        try:
            made = self._api.create_commit(
                self._to.repo,
                operations,
                commit_message=title,
                commit_description=description,
                repo_type=self._to.repo_type,
                revision=self._to.revision,
            )
        except Exception as error:
            raise refusal_of(error) from error
        return str(made.oid)

    def _get(self, url: str) -> Any:
        try:
            answer = _client_of_hub.get_session().get(url, headers=_client_of_hub.build_hf_headers(token=self._token))
            _client_of_hub.hf_raise_for_status(answer)
        except Exception as error:
            raise refusal_of(error) from error
        return answer


def description_of(taken: manifests.Manifest) -> str:
    """The trailers by which operator and agent recognise the commit of a cell."""
    return "\n".join(
        (
            f"SweepCell-Uid: {taken.uid}",
            f"SweepCell-Manifest: {taken.digest}",
            f"SweepCell-Attempt: {taken.attempt}",
            "SweepCell-Format: 1",
        )
    )


def _trailers(message: str) -> Mapping[str, str]:
    return dict(re.findall(r"^(SweepCell-\w+): (\S+)\s*$", message, re.MULTILINE))


def _quote(revision: str) -> str:
    return revision.replace("%", "%25").replace("/", "%2F").replace("#", "%23").replace("?", "%3F")


def _entry_missing(error: Exception) -> bool:
    answer = getattr(error, "response", None)
    return answer is not None and answer.status_code == 404 and answer.headers.get("X-Error-Code") == "EntryNotFound"


def _client() -> Any:
    # The shared client of huggingface_hub has no timeout: a peer that went away would block it for ever.
    transport = _client_of_hub.httpx
    return transport.Client(timeout=transport.Timeout(READ_SECONDS, connect=CONNECT_SECONDS), follow_redirects=True)
