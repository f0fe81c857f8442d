"""The operator's reader of the Hub: what verification and the gate rest on.

Every call is fresh (nothing is cached), scoped to one prefix, and complete: all pages of one commit, or an error. It
repeats nothing but a listing whose head moved meanwhile; when to ask again is the loop's decision.
"""

from __future__ import annotations

from urllib.parse import quote

import aiohttp

from gpupod_operator.core.artifacts import HubCommit, HubDestination, HubFile, HubListing
from gpupod_operator.core.sweepcell.manifests import find_trailers
from gpupod_operator.hub.answers import commits_of, files_of, head_of
from gpupod_operator.hub.refusals import EntryMissing
from gpupod_operator.hub.requests import HubRequests, segment
from gpupod_operator.ports import Clock, HubRepoNotFound, HubUnauthorized, HubUnavailable

HUGGING_FACE = "https://huggingface.co"
MANIFEST = "_cell/manifest.json"
# At 128 commits per hour a second of listing meets a moved head once in 28 times; four in a row is a broken repository.
LISTING_TRIES = 4
# 100 000 files, the Hub's limit for a repository, are 100 pages and their directories.
MOST_PAGES = 400


class HubReader:
    """`ArtifactHub` over HTTP. `session` is shared and closed by its owner; tokens are arguments and are never kept."""

    def __init__(self, session: aiohttp.ClientSession, clock: Clock, *, endpoint: str = HUGGING_FACE) -> None:
        self._requests = HubRequests(session, endpoint)
        self._clock = clock

    async def list_prefix(self, destination: HubDestination, token: str | None) -> HubListing:
        """Every file below the destination's path at the head of its revision, with the cell manifest's bytes.

        The head is read before and after. `at` is the time before the first read, so the listing is at least that
        fresh. A path that does not exist is an empty listing.

        Raises:
            HubUnauthorized: 401. HubForbidden: 403. HubRepoNotFound: no such repository or revision, or hidden.
            HubRateLimited: 429. HubUnavailable: anything else, a head that keeps moving included.
        """
        for _ in range(LISTING_TRIES):
            at = self._clock.now()
            head = await self._head(destination, token)
            try:
                files = await self._files(destination, head, token)
                manifest = await self._manifest(destination, head, token) if MANIFEST in files else None
            except HubRepoNotFound:
                # The commit we just read is gone: history was squashed or the repository deleted. The head tells which.
                continue
            if await self._head(destination, token) == head:
                return HubListing(head=head, at=at, files=files, manifest=manifest)
        raise HubUnavailable(f"{destination.repo}: the head moved during each of {LISTING_TRIES} listings")

    async def commits(
        self, destination: HubDestination, token: str | None, limit: int = 50, wanted: frozenset[str] = frozenset()
    ) -> tuple[HubCommit, ...]:
        """The newest `limit` commits of the destination's revision, newest first; fewer when there are no more.

        With `wanted` (uids of cells) no further page is read once each of them is named by a commit that was read.

        Raises:
            HubError: as `list_prefix`.
        """
        url: str | None = f"{_api(destination)}/commits/{segment(destination.revision)}"
        found: list[HubCommit] = []
        seen: set[str] = set()
        while url is not None and len(found) < limit:
            seen.add(url)
            page, url = await self._page(url, seen, token)
            found += commits_of(page)
            if wanted and all(find_trailers(tuple(found), uid) is not None for uid in wanted):
                break
        return tuple(found[:limit])

    async def check_write(self, destination: HubDestination, token: str | None) -> None:
        """Return if the token may write to the repository; creates nothing.

        Raises:
            HubUnauthorized: no token, or not a valid one. HubForbidden: it may not write. HubRepoNotFound: the
            repository is missing or hidden from it. HubRateLimited, HubUnavailable: not known.
        """
        if token is None:
            raise HubUnauthorized("no token: writing to the Hub needs one")
        # First the token itself: the repository's answer to a bad token looks like a missing repository.
        await self._read("/api/whoami-v2", token)
        await self._read(f"{_api(destination)}/auth-check/write", token, is_json=False)

    async def _head(self, destination: HubDestination, token: str | None) -> str:
        # `expand` keeps the answer small: without it the Hub lists every path of the repository.
        info, _ = await self._page(
            f"{_api(destination)}/revision/{segment(destination.revision)}?expand=sha", (), token
        )
        return head_of(info)

    async def _files(self, destination: HubDestination, head: str, token: str | None) -> dict[str, HubFile]:
        place = f"/{segment(destination.path)}" if destination.path else ""
        url: str | None = f"{_api(destination)}/tree/{segment(head)}{place}?recursive=true&expand=false"
        files: dict[str, HubFile] = {}
        seen: set[str] = set()
        while url is not None:
            seen.add(url)
            try:
                page, url = await self._requests.json(url, token)
            except EntryMissing:
                if files:
                    raise HubUnavailable(f"{destination.repo}: a page of the listing is missing") from None
                return {}
            _refuse_endless(url, seen, destination.repo)
            fresh = files_of(page, destination.path)
            if fresh.keys() & files.keys():
                raise HubUnavailable(f"{destination.repo}: two pages of the listing hold one file")
            files |= fresh
        return files

    async def _manifest(self, destination: HubDestination, head: str, token: str | None) -> bytes:
        kind = "" if destination.repo_type == "model" else f"/{destination.repo_type}s"
        path = f"{destination.path}/{MANIFEST}" if destination.path else MANIFEST
        url = f"{kind}/{_repo(destination)}/resolve/{segment(head)}/{quote(path)}"
        try:
            answer = await self._requests.get(url, token)
        except EntryMissing:
            raise HubUnavailable(f"{destination.repo}: {path} is listed and cannot be read") from None
        # Only the Hub sets this header; a portal's page or a stale cache does not name the commit we asked for.
        if head not in [headers.get("X-Repo-Commit") for headers in (answer.headers, *answer.redirects)]:
            raise HubUnavailable(f"{destination.repo}: the answer for {path} is not from commit {head}")
        return answer.body

    async def _page(self, url: str, seen: set[str] | tuple[()], token: str | None) -> tuple[object, str | None]:
        try:
            page, following = await self._requests.json(url, token)
        except EntryMissing as missing:
            raise HubRepoNotFound(str(missing)) from None
        _refuse_endless(following, seen, "the Hub")
        return page, following

    async def _read(self, url: str, token: str, *, is_json: bool = True) -> None:
        try:
            if is_json:
                await self._requests.json(url, token)
            else:
                await self._requests.get(url, token)
        except EntryMissing as missing:
            raise HubRepoNotFound(str(missing)) from None


def _api(destination: HubDestination) -> str:
    return f"/api/{destination.repo_type}s/{_repo(destination)}"


def _repo(destination: HubDestination) -> str:
    namespace, _, name = destination.repo.partition("/")
    return f"{segment(namespace)}/{segment(name)}"


def _refuse_endless(following: str | None, seen: set[str] | tuple[()], what: str) -> None:
    if following is not None and (following in seen or len(seen) >= MOST_PAGES):
        raise HubUnavailable(f"{what}: the pages do not end")
