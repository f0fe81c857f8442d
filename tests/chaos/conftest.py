"""Schedules on virtual time: many, and each of them quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.operations import OPERATIONS
from chaoskit.schedule import Schedule, play


@pytest.fixture(scope="session")
def points() -> dict[str, int]:
    """How many points each operation has when nothing goes wrong."""
    return {name: len(play(Schedule(name)).points) for name in OPERATIONS}


_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The hook gets the items of all folders.
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.chaos)
