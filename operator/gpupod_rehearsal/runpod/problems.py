"""The vendor's refusals: `application/problem+json` with the literal titles and details seen from the live service."""

from __future__ import annotations

from http import HTTPStatus

NO_CAPACITY = (
    "There are no longer any instances available with the requested specifications. Please refresh and try again."
)
NO_DISK = "There are no longer any instances available with enough disk space."
FULL_HOST = "There are not enough free GPUs on the host machine to start this pod."
HOST_DOWN = "This machine does not have the resources to deploy your pod. Please try a different machine"
#: Titles that Python's own table words differently from version to version.
_TITLES = {413: "Content Too Large", 422: "Unprocessable Entity"}
LOW_BALANCE = "Your account balance is too low to deploy this pod. Please add credits and try again."
SPEND_LIMIT = "Deploying this pod would exceed the spend limit of your account."


class Problem(Exception):
    """A refusal with its HTTP status, `detail` and, for 422, one line per violation."""

    def __init__(self, status: int, detail: str, errors: tuple[str, ...] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors

    def body(self) -> dict[str, object]:
        """The problem+json document."""
        document: dict[str, object] = {
            "title": _TITLES.get(self.status) or HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            document["errors"] = list(self.errors)
        return document


def bad_request(detail: str) -> Problem:
    """400: a broken rule or no capacity; only the detail tells which."""
    return Problem(400, detail)


def not_found(detail: str = "resource not found") -> Problem:
    """404: unknown, or not accessible to this key. The vendor does not tell the two apart."""
    return Problem(404, detail)


def conflict(detail: str) -> Problem:
    """409: the action is not valid for the pod's status, or the pod belongs to a cluster."""
    return Problem(409, detail)


def invalid(*errors: str) -> Problem:
    """422: the body or a parameter does not match the contract."""
    return Problem(422, "Request validation failed.", errors)
