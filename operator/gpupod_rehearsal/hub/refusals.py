"""The Hub's refusals, in its own words: clients and the operator match on these texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import web


class HubRefusedError(Exception):
    """The Hub declines a request: HTTP `status`, error `message`, `X-Error-Code`, extra headers and body fields."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = dict(headers or {})
        self.fields = dict(fields or {})

    def response(self) -> web.Response:
        """The refusal as the Hub sends it: JSON body `{"error": ...}` and the `X-Error-*` headers."""
        headers = dict(self.headers)
        if self.code:
            headers["X-Error-Code"] = self.code
        # A header holds one line; the full text is in the body.
        headers["X-Error-Message"] = self.message.splitlines()[0] if self.message else ""
        return web.json_response({"error": self.message, **self.fields}, status=self.status, headers=headers)


def invalid_token() -> HubRefusedError:
    """401: a token was sent and it is unknown or revoked."""
    return HubRefusedError(401, "Invalid credentials in Authorization header")


def token_needed() -> HubRefusedError:
    """401: no token was sent where one is needed."""
    return HubRefusedError(401, "Invalid username or password.")


def repository_hidden(*, anonymous: bool) -> HubRefusedError:
    """A repository that is missing or may not be seen: the Hub does not tell which."""
    if anonymous:
        return HubRefusedError(401, "Invalid username or password.", code="RepoNotFound")
    return HubRefusedError(404, "Repository not found", code="RepoNotFound")


def revision_not_found(revision: str) -> HubRefusedError:
    """404: the repository has no such branch or commit."""
    return HubRefusedError(404, f"Invalid rev id: {revision}", code="RevisionNotFound")


def entry_not_found(path: str, revision: str) -> HubRefusedError:
    """404: the revision has no such path."""
    return HubRefusedError(404, f'{path} does not exist on "{revision}"', code="EntryNotFound")


def write_forbidden() -> HubRefusedError:
    """403: the token may read and not write."""
    return HubRefusedError(403, "Forbidden: pass `create_pr=1` as a query parameter to create a Pull Request")


def namespace_forbidden(kind: str, namespace: str) -> HubRefusedError:
    """403: the token may not create repositories there."""
    return HubRefusedError(
        403, f"You don't have the rights to create a {kind} under this namespace", fields={"namespace": namespace}
    )


def commit_in_progress() -> HubRefusedError:
    """409: another commit holds the repository; the head has not moved."""
    return HubRefusedError(409, "Another commit operation is in progress for this repository. Please try again later.")


def head_moved() -> HubRefusedError:
    """412: the head is not the parent the commit names."""
    return HubRefusedError(412, "A commit has happened since. Please refresh and try again.")


def commit_quota(limit: int, wait_seconds: float) -> HubRefusedError:
    """The per-repository commit quota. Its RateLimit headers stay healthy on purpose: so do the Hub's."""
    return HubRefusedError(
        429,
        f"You have exceeded the rate limit for repository commits ({limit} per hour). "
        f"You can retry this action in {spoken_wait(wait_seconds)}. "
        "If you need a higher limit, please contact us at website@huggingface.co.",
    )


def api_quota(limit: int, window_seconds: int) -> HubRefusedError:
    """429: the requests of this window are used up; the caller adds the `RateLimit` headers."""
    return HubRefusedError(
        429,
        f"We had to rate limit you, you hit the quota of {limit} api requests per {window_seconds // 60} minutes "
        "period. Upgrade to a PRO user or Team/Enterprise organization account for higher limits.",
    )


def queue_full() -> HubRefusedError:
    """429: the git backend has too much to do for some seconds."""
    return HubRefusedError(429, "maximum queue size reached")


def lfs_object_missing(paths: Iterable[str]) -> HubRefusedError:
    """400: a commit points to LFS objects that were never uploaded."""
    return HubRefusedError(
        400,
        "Your push was rejected because an LFS pointer pointed to a file that does not exist. For instance, this can "
        "happen if you used git push --no-verify to push your changes. Offending file: - " + " - ".join(paths),
    )


def directory_full(directories: Iterable[str], limit: int) -> HubRefusedError:
    """400: a directory would hold more files than git on the Hub allows."""
    return HubRefusedError(
        400,
        "Your push was rejected because it contains too many files per directory. Each directory in your git repo can "
        f"only contain up to {limit} files. Offending directories: " + " ".join(f"/{path}/" for path in directories),
    )


def repository_full(files: int, limit: int) -> HubRefusedError:
    """400: the repository would hold more files than the Hub allows."""
    return HubRefusedError(
        400, f"Your git repo would contain {files} files after this push, over the limit of {limit} files"
    )


def regular_file_too_large(paths: Iterable[str], limit_bytes: int) -> HubRefusedError:
    """400: a file was sent as a plain git blob and is too large for one."""
    return HubRefusedError(
        400,
        f"Your push was rejected because it contains files larger than {limit_bytes // (1024 * 1024)} MiB. Please use "
        "https://git-lfs.github.com/ to store large files. Offending files: - " + " - ".join(paths),
    )


def storage_quota(*, private: bool) -> HubRefusedError:
    """403: the namespace's storage for LFS objects is used up; it stays so until a person acts."""
    if private:
        return HubRefusedError(
            403, "Private repository storage limit reached, please upgrade your plan to increase it."
        )
    return HubRefusedError(403, "You have exceeded your public storage space. Please contact us to increase it.")


def bad_request(message: str) -> HubRefusedError:
    """400: the request makes no sense."""
    return HubRefusedError(400, message)


def spoken_wait(seconds: float) -> str:
    """The wait as the Hub words it: minutes, or "about 1 hour" from three quarters of an hour on."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    if minutes == 1:
        return "1 minute"
    if minutes < 45:
        return f"{minutes} minutes"
    return "about 1 hour"
