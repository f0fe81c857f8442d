"""How long a loop sleeps after a pass."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpupod_operator.handlers.gpupod import pause_after
from gpupod_operator.runtime.loop import Passed

NOW, SHORT, LONG = timedelta(0), timedelta(seconds=5), timedelta(minutes=5)


@pytest.mark.parametrize(
    ("passed", "longest", "pause"),
    [
        (Passed(NOW), None, NOW),
        (Passed(NOW), SHORT, NOW),
        (Passed(None), None, None),
        (Passed(None), SHORT, SHORT),
        (Passed(LONG), SHORT, SHORT),
        (Passed(LONG), None, LONG),
        (Passed(None, vanished=True), None, timedelta(seconds=2)),
    ],
)
def test_zero_is_at_once_and_none_is_until_woken(passed, longest, pause):
    assert pause_after(passed, longest) == pause
