"""All tests of this folder talk to a real API server."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The hook gets the items of all folders.
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.cluster)
