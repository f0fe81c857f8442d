"""Each row of the tables of refusals and faults: what it means, by what was asked."""

from __future__ import annotations

import json
import socket

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from gpupod_operator.core.provider import Failure
from gpupod_operator.runpod.calls import CallKind
from gpupod_operator.runpod.errors import Unsupported, classify_answer, classify_fault, malformed
from gpupod_operator.runpod.redaction import redact

READ, CREATE, MUTATE, RELEASE = CallKind.READ, CallKind.CREATE, CallKind.MUTATE, CallKind.RELEASE
EVERY_KIND = (READ, CREATE, MUTATE, RELEASE)
PROBLEM = {"Content-Type": "application/problem+json"}
HTML = {"Content-Type": "text/html; charset=UTF-8"}
NO_STOCK = (
    "There are no longer any instances available with the requested specifications. Please refresh and try again."
)
FULL_HOST = "There are not enough free GPUs on the host machine to start this pod."
BANNED_PAGE = b"<!DOCTYPE html><html><body><h1>Access denied</h1><p>error code: 1010</p></body></html>"
BANNED_JSON = (
    b'{"type":"https://developers.cloudflare.com/support/error-1010/","title":"Error 1010: Access denied",'
    b'"status":403,"detail":"banned","error_code":1010,"cloudflare_error":true}'
)
BAD_GATEWAY = b"<html><head><title>502 Bad Gateway</title></head><body>cloudflare</body></html>"


def problem(status: int, detail: str, *errors: str) -> bytes:
    return json.dumps(
        {"title": "x", "status": status, "detail": detail, **({"errors": errors} if errors else {})}
    ).encode()


@pytest.mark.parametrize(
    ("kind", "status", "detail", "failure"),
    [
        (READ, 401, "missing bearer token", Failure.UNAUTHORIZED),
        (CREATE, 401, "missing bearer token", Failure.UNAUTHORIZED),
        (RELEASE, 401, "missing bearer token", Failure.UNAUTHORIZED),
        (READ, 403, "access denied", Failure.FORBIDDEN),
        (CREATE, 403, "access denied", Failure.FORBIDDEN),
        (READ, 404, "resource not found", Failure.NOT_FOUND),
        (RELEASE, 404, "pod not found", Failure.NOT_FOUND),
        (MUTATE, 404, "pod not found", Failure.NOT_FOUND),
        (CREATE, 404, "template not found", Failure.INVALID),
        (CREATE, 402, "Payment required", Failure.INSUFFICIENT_BALANCE),
        (CREATE, 402, NO_STOCK, Failure.INSUFFICIENT_BALANCE),
        (CREATE, 400, "Your account balance is too low to deploy this pod.", Failure.INSUFFICIENT_BALANCE),
        (CREATE, 400, "Deploying this pod would exceed the spend limit of your account.", Failure.INSUFFICIENT_BALANCE),
        (CREATE, 403, "Add CREDITS to deploy", Failure.INSUFFICIENT_BALANCE),
        (MUTATE, 400, "create pod: not enough credits", Failure.INSUFFICIENT_BALANCE),
        (CREATE, 400, "no load balancer with these credentials", Failure.INVALID),
        (CREATE, 413, "too large", Failure.INVALID),
        (CREATE, 422, "Request validation failed.", Failure.INVALID),
        (MUTATE, 422, "Request validation failed.", Failure.INVALID),
        (CREATE, 429, "rate limit exceeded for the minute window", Failure.THROTTLED),
        (READ, 429, "rate limit exceeded for the minute window", Failure.THROTTLED),
        (MUTATE, 409, "Action not valid for current pod status", Failure.CONFLICT),
        (READ, 410, "retired", Failure.API_GONE),
        (CREATE, 410, "retired", Failure.API_GONE),
        (CREATE, 400, NO_STOCK, Failure.NO_CAPACITY),
        (CREATE, 400, f"create pod: {NO_STOCK}", Failure.NO_CAPACITY),
        (CREATE, 400, NO_STOCK.upper(), Failure.NO_CAPACITY),
        (CREATE, 400, "There are no longer any instances available with enough disk space.", Failure.NO_CAPACITY),
        (
            CREATE,
            400,
            "There are no longer any instances available with the request specifications. Please try again later.",
            Failure.NO_CAPACITY,
        ),
        (CREATE, 400, "There are no instances currently available", Failure.NO_CAPACITY),
        (
            CREATE,
            400,
            "This machine does not have the resources to deploy your pod. Please try a different machine",
            Failure.NO_CAPACITY,
        ),
        (CREATE, 400, "ResourcesUnavailable", Failure.NO_CAPACITY),
        (CREATE, 400, "Insufficient resources", Failure.NO_CAPACITY),
        (CREATE, 400, "insufficient capacity", Failure.NO_CAPACITY),
        (CREATE, 400, "sold out", Failure.NO_CAPACITY),
        (CREATE, 400, "out of stock", Failure.NO_CAPACITY),
        (MUTATE, 400, FULL_HOST, Failure.HOST_FULL),
        (MUTATE, 400, f"start pod: {FULL_HOST}", Failure.HOST_FULL),
        (MUTATE, 400, "Host is down", Failure.HOST_FULL),
        (CREATE, 400, "exactly one of gpu or cpu must be set", Failure.INVALID),
        (MUTATE, 400, "Cannot resume a spot pod as an on demand pod.", Failure.INVALID),
        (CREATE, 405, "The requested method is not allowed for this path.", Failure.INVALID),
        (READ, 400, "include and product must be given together", Failure.UNAVAILABLE),
        (READ, 422, "cursor: malformed", Failure.UNAVAILABLE),
        (READ, 500, "Something went wrong. Please try again later or contact support.", Failure.UNAVAILABLE),
        (CREATE, 500, "Something went wrong. Please try again later or contact support.", Failure.AMBIGUOUS),
        # The words of a 5xx prove nothing: a pod was made although the answer said this.
        (CREATE, 500, NO_STOCK, Failure.AMBIGUOUS),
        (CREATE, 503, "unavailable", Failure.AMBIGUOUS),
        (MUTATE, 504, "timeout", Failure.AMBIGUOUS),
        (RELEASE, 500, "pod not found to terminate", Failure.AMBIGUOUS),
        (CREATE, 408, "timeout", Failure.AMBIGUOUS),
    ],
)
def test_the_api_s_own_refusals(kind: CallKind, status: int, detail: str, failure: Failure):
    error = classify_answer(kind, status, PROBLEM, problem(status, detail))
    assert (error.failure, error.status) == (failure, status)


@pytest.mark.parametrize(
    ("kind", "status", "body", "failure"),
    [
        *((kind, 403, BANNED_PAGE, Failure.UNAVAILABLE) for kind in EVERY_KIND),
        *((kind, 403, BANNED_JSON, Failure.UNAVAILABLE) for kind in EVERY_KIND),
        *((kind, 200, BANNED_PAGE, Failure.UNAVAILABLE) for kind in EVERY_KIND),
        *((kind, 403, b"<html>Forbidden</html>", Failure.UNAVAILABLE) for kind in EVERY_KIND),
        *((kind, 404, b"<html>no such host</html>", Failure.UNAVAILABLE) for kind in EVERY_KIND),
        *((kind, 404, b'"nothing"', Failure.UNAVAILABLE) for kind in EVERY_KIND),
        *((kind, 404, b"", Failure.UNAVAILABLE) for kind in EVERY_KIND),
        (CREATE, 400, b"<html>Bad Request</html>", Failure.UNAVAILABLE),
        *((kind, 410, b"gone", Failure.API_GONE) for kind in EVERY_KIND),
        (READ, 502, BAD_GATEWAY, Failure.UNAVAILABLE),
        (CREATE, 502, BAD_GATEWAY, Failure.AMBIGUOUS),
        (MUTATE, 502, BAD_GATEWAY, Failure.AMBIGUOUS),
        (RELEASE, 502, BAD_GATEWAY, Failure.AMBIGUOUS),
        (CREATE, 524, BAD_GATEWAY, Failure.AMBIGUOUS),
        (CREATE, 500, BANNED_PAGE, Failure.AMBIGUOUS),
        (CREATE, 201, b'{"id": "', Failure.AMBIGUOUS),
        (READ, 200, b"<html>maintenance</html>", Failure.UNAVAILABLE),
        (CREATE, 302, b"", Failure.AMBIGUOUS),
        (READ, 302, b"", Failure.UNAVAILABLE),
        (CREATE, 499, b"", Failure.AMBIGUOUS),
        (CREATE, 429, b"<html>slow down</html>", Failure.THROTTLED),
    ],
)
def test_answers_of_something_in_front_of_the_api(kind: CallKind, status: int, body: bytes, failure: Failure):
    assert classify_answer(kind, status, HTML, body).failure is failure


def test_a_problem_document_served_as_plain_json_is_the_api_s_word():
    headers = {"Content-Type": "application/json"}
    assert classify_answer(READ, 404, headers, problem(404, "pod not found")).failure is Failure.NOT_FOUND


def test_a_route_that_a_deployment_lacks_is_unsupported_and_a_proxy_s_501_is_not():
    own = classify_answer(READ, 501, PROBLEM, problem(501, "not implemented"))
    assert isinstance(own, Unsupported)
    assert own.failure is Failure.UNAVAILABLE
    assert not isinstance(classify_answer(READ, 501, HTML, BAD_GATEWAY), Unsupported)


def test_the_vendor_s_words_errors_and_request_id_are_kept():
    headers = {**PROBLEM, "x-request-id": "req-7"}
    body = problem(422, "Request validation failed.", "$: additional properties 'bogus' not allowed")
    error = classify_answer(CREATE, 422, headers, body)
    assert error.detail == "422: Request validation failed."
    assert error.errors == ("$: additional properties 'bogus' not allowed",)
    assert error.request_id == "req-7"
    assert "req-7" in str(error)
    assert "req-7" not in error.detail


def test_the_operation_s_name_is_stripped_from_the_words():
    assert classify_answer(MUTATE, 400, PROBLEM, problem(400, f"start pod: {FULL_HOST}")).detail == f"400: {FULL_HOST}"


def test_no_page_of_html_becomes_a_message():
    assert classify_answer(READ, 502, HTML, BAD_GATEWAY * 1000).detail == "502: the answer is not JSON (text/html)"


def test_a_refusal_tells_how_long_to_wait():
    headers = {**PROBLEM, "Retry-After": "7", "RateLimit": '"minute";r=0;t=12, "hour";r=0;t=1800, "day";r=5;t=9000'}
    assert classify_answer(CREATE, 429, headers, problem(429, "x")).retry_after == 1800


def test_values_of_the_request_do_not_come_back_in_an_error():
    body = problem(400, "bad env value s3cr3t-of-mine", "$.env.K: 's3cr3t-of-mine' and hf_abcdefgh are refused")
    error = classify_answer(CREATE, 400, PROBLEM, body, secrets=["s3cr3t-of-mine", "1"])
    assert "s3cr3t" not in f"{error} {error.detail} {error.errors}"
    assert "hf_abcdefgh" not in error.errors[0]


def test_redaction_keeps_short_values_and_masks_what_looks_like_a_token():
    assert redact("port 1 of 8888", ["1", "8888"]) == "port 1 of 8888"
    assert redact("Authorization: Bearer abc.def rpa_ABCDEF123") == "Authorization: Bearer *** ***"
    assert redact("ab-longer-secret", ["longer-secret", "ab-longer-secret"]) == "***"


def connector_error(error: OSError) -> aiohttp.ClientConnectorError:
    return aiohttp.ClientConnectorError(ConnectionKey("api.runpod.io", 443, True, True, None, None, None), error)


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize(
    "fault",
    [
        connector_error(ConnectionRefusedError(111, "Connection refused")),
        aiohttp.ClientConnectorDNSError(
            ConnectionKey("api.runpod.io", 443, True, True, None, None, None), socket.gaierror(-2, "Name unknown")
        ),
        aiohttp.ConnectionTimeoutError("connect"),
    ],
    ids=["refused", "dns", "connect-timeout"],
)
def test_what_was_never_sent_is_unavailable_for_every_call(kind: CallKind, fault: Exception):
    assert classify_fault(kind, fault).failure is Failure.UNAVAILABLE


@pytest.mark.parametrize(
    "fault",
    [
        TimeoutError(),
        aiohttp.SocketTimeoutError("read"),
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientOSError(104, "Connection reset by peer"),
        aiohttp.ClientPayloadError("incomplete"),
        ConnectionResetError(),
    ],
    ids=lambda fault: type(fault).__name__,
)
@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        (READ, Failure.UNAVAILABLE),
        (CREATE, Failure.AMBIGUOUS),
        (MUTATE, Failure.AMBIGUOUS),
        (RELEASE, Failure.AMBIGUOUS),
    ],
)
def test_a_lost_answer_is_ambiguous_for_what_changes_something(kind: CallKind, failure: Failure, fault: Exception):
    assert classify_fault(kind, fault).failure is failure


def test_a_success_that_cannot_be_used_may_have_happened():
    assert malformed(CREATE, 201, {}, "no id").failure is Failure.AMBIGUOUS
    assert malformed(READ, 200, {}, "no id").failure is Failure.UNAVAILABLE
