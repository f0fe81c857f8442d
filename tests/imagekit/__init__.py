"""Building and running the container image, for tests."""
