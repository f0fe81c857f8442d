"""An answer is classified by its status; only the Hub's own code proves that something is missing."""

from __future__ import annotations

import pytest

from gpupod_operator.hub.refusals import EntryMissing, refusal
from gpupod_operator.ports import (
    HubForbidden,
    HubRateLimited,
    HubRepoNotFound,
    HubUnauthorized,
    HubUnavailable,
)

TOKEN = "hf_secret_value"


def code(name: str) -> dict[str, str]:
    return {"X-Error-Code": name}


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        (401, {}, HubUnauthorized),
        (401, code("RepoNotFound"), HubUnauthorized),
        (403, {}, HubForbidden),
        (403, code("GatedRepo"), HubForbidden),
        (404, code("RepoNotFound"), HubRepoNotFound),
        (404, code("RevisionNotFound"), HubRepoNotFound),
        (404, code("EntryNotFound"), EntryMissing),
        (404, {}, HubUnavailable),
        (404, code("SomethingNew"), HubUnavailable),
        (400, {}, HubUnavailable),
        (413, {}, HubUnavailable),
        (429, {}, HubRateLimited),
        (500, code("EntryNotFound"), HubUnavailable),
        (500, code("RepoNotFound"), HubUnavailable),
        (503, {}, HubUnavailable),
        (302, {}, HubUnavailable),
    ],
)
def test_status_first(status, headers, kind):
    assert type(refusal(status, headers, "{}", "GET /api/x", TOKEN)) is kind


def test_the_message_names_the_request_the_status_the_server_s_words_and_the_request_id():
    error = refusal(403, {"X-Request-Id": "Root=1-abc"}, '{"error": "no\\nright"}', "GET /api/x", TOKEN)
    assert str(error) == "GET /api/x: 403 no right (request Root=1-abc)"


@pytest.mark.parametrize("body", [f'{{"error": "bad {TOKEN}"}}', f"bad {TOKEN}", f"<html>{TOKEN}</html>"])
def test_a_token_that_the_server_repeats_is_blanked(body):
    assert TOKEN not in str(refusal(400, {}, body, "GET /api/x", TOKEN))
    assert TOKEN not in str(refusal(400, {"X-Error-Message": f"bad {TOKEN}"}, "", "GET /api/x", TOKEN))


def test_a_long_page_is_cut_and_html_is_left_out():
    assert len(str(refusal(500, {}, "x" * 10_000, "GET /api/x", None))) < 400
    assert "html" not in str(refusal(502, {}, "<html>Bad gateway</html>", "GET /api/x", None))


def test_without_a_token_a_401_says_that_none_was_sent():
    assert "no token was sent" in str(refusal(401, {}, "{}", "GET /api/x", None))
