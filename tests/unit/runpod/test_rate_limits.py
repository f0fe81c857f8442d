from __future__ import annotations

import pytest

from gpupod_operator.runpod.rate_limits import (
    DEFAULT_WAIT,
    LONGEST_WAIT,
    WindowNotice,
    read_windows,
    wait_after_refusal,
)

POLICY = '"minute";q=60;w=60, "hour";q=3000;w=3600, "day";q=50000;w=86400'


def test_both_headers_are_read_together():
    windows = read_windows({"RateLimit": '"minute";r=0;t=12, "hour";r=2800;t=1812', "RateLimit-Policy": POLICY})
    assert windows == {
        "minute": WindowNotice(0, 12.0, 60, 60.0),
        "hour": WindowNotice(2800, 1812.0, 3000, 3600.0),
        "day": WindowNotice(None, None, 50000, 86400.0),
    }


@pytest.mark.parametrize(
    ("header", "windows"),
    [
        ("", {}),
        # As seen live: no space, and a window without its reset.
        ('"minute";r=176;t=1,"hour";r=7193', {"minute": WindowNotice(176, 1.0), "hour": WindowNotice(7193)}),
        ("minute; r = 5 ; t = 3", {"minute": WindowNotice(5, 3.0)}),
        ('"a, b";r=1;t=2', {"a, b": WindowNotice(1, 2.0)}),
        ("garbage", {"garbage": WindowNotice()}),
        ('"minute";r=0;t=999999999', {"minute": WindowNotice(0, LONGEST_WAIT)}),
    ],
)
def test_forms_of_the_header(header: str, windows: dict[str, WindowNotice]):
    assert read_windows({"RateLimit": header}) == windows


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "7", "RateLimit": '"minute";r=0;t=12, "hour";r=3;t=1800'}, 12),
        ({"Retry-After": "30", "RateLimit": '"minute";r=0;t=12'}, 30),
        ({"RateLimit": '"hour";r=0', "RateLimit-Policy": POLICY}, 3600),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, DEFAULT_WAIT),
        ({}, DEFAULT_WAIT),
        ({"Retry-After": "99999999"}, LONGEST_WAIT),
    ],
)
def test_the_wait_after_a_refusal_is_the_longest_that_is_named(headers: dict[str, str], seconds: float):
    assert wait_after_refusal(headers) == seconds
