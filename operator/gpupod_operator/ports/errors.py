"""The errors that the runtime is told with. No message of any of them holds a secret."""

from __future__ import annotations

from collections.abc import Sequence

from gpupod_operator.core.provider import Failure
from gpupod_operator.core.shell import ShellReading


class ProviderError(Exception):
    """A provider call that did not do what was asked. `failure` says what that means; never holds a secret."""

    def __init__(
        self,
        failure: Failure,
        detail: str,
        *,
        status: int | None = None,
        errors: Sequence[str] = (),
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{failure}: {detail}" + (f" (request {request_id})" if request_id else ""))
        self.failure = failure
        self.detail = detail
        self.status = status
        self.errors = tuple(errors)
        self.request_id = request_id
        self.retry_after = retry_after


class HubError(Exception):
    """A Hub call that was not answered. Subclasses say why; none of them says that anything is missing."""


class HubUnauthorized(HubError):
    """401: the token is wrong or expired."""


class HubForbidden(HubError):
    """403: no right, or a storage quota; persistent."""


class HubRepoNotFound(HubError):
    """404 of the repository or revision: missing, or no access."""


class HubRateLimited(HubError):
    """429. `kind` is Commit, Api or Queue; `retry_after` in seconds."""

    def __init__(self, message: str, kind: str, retry_after: float) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after


class HubUnavailable(HubError):
    """5xx, transport fault, timeout, unreadable body, or a head that moved during the listing."""


class ShellError(Exception):
    """A session or command whose outcome is not known. `reading` classifies the session if it never opened."""

    def __init__(self, message: str, reading: ShellReading | None = None) -> None:
        super().__init__(message)
        self.reading = reading


class LaunchRefused(Exception):
    """`workload.check` ran and exited non-zero; the message holds the exit code and the tail of its output."""


class ApiConflict(Exception):
    """The object changed since it was read (409): read again, decide again."""


class ApiNotFound(Exception):
    """The object is gone (404)."""


class ApiInvalid(Exception):
    """The API server refused the write for good (422); retrying the same bytes cannot help."""


class ApiUnavailable(Exception):
    """The API server did not answer, or with 5xx/429/401 after a new login: unknown."""


class ApiForbidden(Exception):
    """403: RBAC, a policy, or a namespace that is terminating; the message says which."""
