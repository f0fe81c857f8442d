"""From an answer or a fault to what it means: the one place that turns HTTP into `Failure`.

Two questions decide. Does the API speak, or something in front of it? And if nothing is known: can it have happened?
A read that fails is UNAVAILABLE. A create or a change that may have been carried out is AMBIGUOUS and is never called
anything else; only what provably never reached the API is UNAVAILABLE. Details carry no request id, no number that
moves and no secret, so that the same trouble twice gives the same sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import aiohttp

from gpupod_operator.core.provider import Failure
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.calls import CallKind
from gpupod_operator.runpod.problems import Foreign, Problem, read_problem
from gpupod_operator.runpod.rate_limits import wait_after_refusal
from gpupod_operator.runpod.redaction import redact
from gpupod_operator.runpod.vendor_texts import means_balance, means_host_full, means_no_capacity

REQUEST_ID = "x-request-id"
# 408 and Cloudflare's and nginx' 499: the other side gave up on us, and what was sent may have arrived.
_GAVE_UP = frozenset({408, 499})
# Refusals whose number alone says it, whoever speaks. All of them come before the request is carried out.
_BY_NUMBER = {
    401: Failure.UNAUTHORIZED,
    402: Failure.INSUFFICIENT_BALANCE,
    410: Failure.API_GONE,
    413: Failure.INVALID,
    429: Failure.THROTTLED,
}
# Refusals that count only as the API's own: a proxy's 404 is no proof that a pod is gone.
_BY_PROBLEM = {
    403: Failure.FORBIDDEN,
    404: Failure.NOT_FOUND,
    409: Failure.CONFLICT,
    422: Failure.INVALID,
}
# What a read may end with; any other refusal of a read only says that nothing is known.
_READ_FAILURES = frozenset(
    {
        Failure.UNAVAILABLE,
        Failure.API_GONE,
        Failure.THROTTLED,
        Failure.UNAUTHORIZED,
        Failure.FORBIDDEN,
        Failure.NOT_FOUND,
    }
)


class IncompleteAnswer(ProviderError):
    """A read that was answered, but not wholly: a broken page, a pod that cannot be told. Nothing of it may be used."""

    def __init__(self, detail: str, *, request_id: str | None = None) -> None:
        super().__init__(Failure.UNAVAILABLE, detail, status=200, request_id=request_id)


class Unsupported(ProviderError):
    """A read that this deployment of the API does not have (405, 501, in the API's own words). Asking again is idle."""


def classify_answer(
    kind: CallKind, status: int, headers: Mapping[str, str], body: bytes, *, secrets: Iterable[str] = ()
) -> ProviderError:
    """What an answer means that is not the expected one. `secrets` are values that the vendor might echo."""
    said = read_problem(body, headers.get("Content-Type", ""))
    secrets = tuple(secrets)
    detail = redact(said.detail if isinstance(said, Problem) else said.what, secrets)
    failure = _failure(kind, status, said)
    if isinstance(said, Foreign) and said.banned:
        detail = "Cloudflare refuses this client (error 1010)"
    unsupported = kind is CallKind.READ and status in (405, 501) and isinstance(said, Problem)
    return (Unsupported if unsupported else ProviderError)(
        failure,
        f"{status}: {detail}",
        status=status,
        errors=[redact(line, secrets) for line in said.errors] if isinstance(said, Problem) else (),
        request_id=headers.get(REQUEST_ID),
        retry_after=wait_after_refusal(headers) if failure is Failure.THROTTLED else None,
    )


def malformed(kind: CallKind, status: int, headers: Mapping[str, str], what: str) -> ProviderError:
    """A success whose body cannot be used: for a create or a change it may well have happened."""
    return ProviderError(_not_known(kind), f"{status}: {what}", status=status, request_id=headers.get(REQUEST_ID))


def classify_fault(kind: CallKind, error: BaseException) -> ProviderError:
    """What it means that no whole answer came. The error itself is dropped: it carries the request and its key."""
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ServerFingerprintMismatch)):
        # Name resolution, TCP or TLS failed: the request was never written.
        return ProviderError(Failure.UNAVAILABLE, f"cannot connect to {_peer(error)}")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return ProviderError(Failure.UNAVAILABLE, "no connection in time")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return ProviderError(Failure.UNAVAILABLE, f"the proxy refuses to connect ({error.status})")
    if isinstance(error, TimeoutError):
        return ProviderError(_not_known(kind), "no answer in time")
    return ProviderError(_not_known(kind), f"the connection was lost ({type(error).__name__})")


def _failure(kind: CallKind, status: int, said: Problem | Foreign) -> Failure:
    failure = _meaning(kind, status, said)
    return failure if kind is not CallKind.READ or failure in _READ_FAILURES else Failure.UNAVAILABLE


def _meaning(kind: CallKind, status: int, said: Problem | Foreign) -> Failure:
    if isinstance(said, Foreign) and said.banned and status < 500:
        # Seen with 403 and with 200: the request was stopped before the API.
        return Failure.UNAVAILABLE
    if status < 400 or status >= 500 or status in _GAVE_UP:
        return _not_known(kind)
    if status in _BY_NUMBER:
        return _BY_NUMBER[status]
    if isinstance(said, Foreign):
        return Failure.UNAVAILABLE
    words = " ".join((said.detail, *said.errors))
    if status in (400, 403) and means_balance(words):
        return Failure.INSUFFICIENT_BALANCE
    if status == 400:
        return _broken_rule_or_no_room(kind, words)
    if status == 404 and kind is CallKind.CREATE:
        # Nothing that a create names may be missing: registry, volume, template. The same request fails again.
        return Failure.INVALID
    return _BY_PROBLEM.get(status, Failure.INVALID)


def _broken_rule_or_no_room(kind: CallKind, words: str) -> Failure:
    if not (means_host_full(words) or means_no_capacity(words)):
        return Failure.INVALID
    return Failure.NO_CAPACITY if kind is CallKind.CREATE else Failure.HOST_FULL


def _not_known(kind: CallKind) -> Failure:
    return Failure.UNAVAILABLE if kind is CallKind.READ else Failure.AMBIGUOUS


def _peer(error: aiohttp.ClientConnectorError | aiohttp.ServerFingerprintMismatch) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.host}:{error.port} ({error.os_error.strerror or type(error).__name__})"
    return f"{error.host}:{error.port} (its certificate is not the pinned one)"
