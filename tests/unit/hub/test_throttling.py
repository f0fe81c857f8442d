"""The Hub's three 429s, from the texts and headers it was seen to send."""

from __future__ import annotations

import pytest

from gpupod_operator.hub.throttling import commit_limit, throttling

HEALTHY = {"RateLimit": '"api";r=647;t=30', "RateLimit-Policy": '"fixed window";"api";q=1000;w=300'}
SPENT = {"RateLimit": '"api";r=0;t=42', "RateLimit-Policy": '"fixed window";"api";q=1000;w=300'}
COMMITS = (
    "You have exceeded the rate limit for repository commits ({limit} per hour). You can retry this action in {wait}."
)
API = "We had to rate limit you, you hit the quota of 1000 api requests per 5 minutes period."


@pytest.mark.parametrize(
    ("headers", "text", "kind", "seconds"),
    [
        (HEALTHY, COMMITS.format(limit=128, wait="43 minutes"), "Commit", 43 * 60 + 30),
        (HEALTHY, COMMITS.format(limit=128, wait="about 1 hour"), "Commit", 3600),
        (HEALTHY, COMMITS.format(limit=128, wait="about an hour"), "Commit", 3600),
        (HEALTHY, COMMITS.format(limit=128, wait="a minute"), "Commit", 90),
        (SPENT, COMMITS.format(limit=128, wait="5 minutes"), "Commit", 330),
        ({"Retry-After": "68"}, COMMITS.format(limit=320, wait="some time"), "Commit", 3600),
        ({}, "You have exceeded our hourly quotas for action: commit", "Commit", 3600),
        (SPENT, API, "Api", 43),
        (HEALTHY, API, "Api", 300),
        ({**HEALTHY, "Retry-After": "20"}, API, "Api", 21),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", "Api", 300),
        ({"Retry-After": "99999999"}, "", "Api", 3900),
        ({"RateLimit": '"api";r=0;t=0'}, "", "Api", 1),
        ({"RateLimit": '"pages";r=5;t=9, "api";r=0;t=60'}, "", "Api", 61),
        (HEALTHY, "Maximum queue size reached", "Queue", 10),
        (HEALTHY, "maximum time in concurrency queue reached", "Queue", 10),
        ({}, "", "Api", 300),
    ],
)
def test_kind_and_wait(headers, text, kind, seconds):
    assert throttling(headers, text) == (kind, seconds)


@pytest.mark.parametrize(("limit", "text"), [(128, COMMITS), (320, COMMITS), (None, API), (None, "")])
def test_the_limit_is_learned_from_the_text(limit, text):
    assert commit_limit(text.format(limit=limit, wait="1 minute")) == limit
