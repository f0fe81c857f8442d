"""Faults by name: what goes wrong, at which operation, before or after the Hub has done it, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

FAULTS: Mapping[str, str] = {
    "status_before": "answer `status` and do nothing",
    "status_after": "do it, then answer `status` as if it had failed",
    "drop_before": "close the connection and do nothing",
    "drop_after": "do it, then close the connection without an answer",
    "delay_before": "wait `seconds`, then do it",
    "delay_after": "do it, then wait `seconds` before the answer",
    "truncated_body": "do it, announce the whole answer, send half of it and close the connection",
    "html_page": "answer 200 with a page of HTML, as a captive portal does",
    "api_quota": "429 of the request quota, RateLimit header with r=0 and t=`seconds`",
    "commit_quota": "429 of the repository's commit quota, text with a wait of `seconds`; headers healthy",
    "queue_full": "429 of the git backend's queue",
    "commit_in_progress": "409, another commit holds the repository",
    "head_moved": "412, a commit has happened since",
    "private_storage_full": "403, the private storage limit is reached",
    "public_storage_full": "403, the public storage space is exceeded",
    "lagging_revision": "answer from the commit before the head of the branch",
}


@dataclass
class Fault:
    """One armed fault.

    `operation` is a name of `routes.OPERATIONS` or `*`; `repo` (namespace/name) limits it to one repository. It lets
    `skip` matching requests pass, then strikes `times` requests (None: until cleared). `status` is an HTTP status,
    `seconds` a duration, `message` replaces the default text of a status fault.
    """

    name: str
    operation: str = "*"
    repo: str | None = None
    times: int | None = 1
    skip: int = 0
    status: int = 500
    seconds: float = 0.0
    message: str = "Internal Error - We're working hard to fix this as soon as possible!"

    def __post_init__(self) -> None:
        if self.name not in FAULTS:
            raise ValueError(f"unknown fault {self.name!r}; known are {', '.join(sorted(FAULTS))}")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class FaultBoard:
    """The armed faults, in the order they were armed; the first that matches a request strikes it."""

    def __init__(self) -> None:
        self._armed: list[Fault] = []

    def arm(self, fault: Fault) -> Fault:
        self._armed.append(fault)
        return fault

    def clear(self) -> None:
        self._armed.clear()

    @property
    def armed(self) -> tuple[Fault, ...]:
        return tuple(self._armed)

    def strike(self, operation: str, repo_id: str | None) -> Fault | None:
        """The fault that hits this request, if any; counts it."""
        for fault in self._armed:
            if fault.operation not in ("*", operation) or fault.repo not in (None, repo_id):
                continue
            if fault.skip > 0:
                fault.skip -= 1
                continue
            if fault.times is not None:
                fault.times -= 1
                if fault.times <= 0:
                    self._armed.remove(fault)
            return fault
        return None
