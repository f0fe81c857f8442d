"""Why a cell did not land: one exception with a class, a typed exit code and a time to wait."""

from __future__ import annotations

LANDED = 0
NOTHING_TO_DO = 3
QUOTA = 10
CONFLICT = 11
AUTH = 12
STORAGE_QUOTA = 13
BAD_INPUT = 14
AMBIGUOUS = 15
TRANSPORT = 16

MEANING = {
    LANDED: "landed: the files and the manifest are on the Hub",
    NOTHING_TO_DO: "nothing to do: no done file yet, or it is already verified",
    QUOTA: "a Hub rate limit; retryAfter says for how many seconds",
    CONFLICT: "another commit or another upload is in progress",
    AUTH: "the token is missing, wrong, or may not write there",
    STORAGE_QUOTA: "the Hub account's storage is full",
    BAD_INPUT: "the cell cannot be taken as it is; the message says what to change",
    AMBIGUOUS: "the commit may or may not have landed; the next run asks the Hub first",
    TRANSPORT: "the Hub could not be reached or answered with an error",
}

HOUR = 3600.0


class Refusal(Exception):
    """The cell did not land in this run.

    `kind` is one word for machines, `exit_code` one of the codes above, `retry_after` the seconds after which another
    run makes sense (None: the caller backs off by itself). `ambiguous`: the commit may have landed all the same.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        exit_code: int,
        *,
        retry_after: float | None = None,
        ambiguous: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.exit_code = exit_code
        self.retry_after = retry_after
        self.ambiguous = ambiguous
