"""Fixtures for all folders of tests."""

pytest_plugins = ["clusterkit.fixtures", "worldkit.fixtures"]
