"""What the test folders share: fixtures of a real control plane, and a small client that waits by watching."""

from clusterkit.admin import Admin, Refused

__all__ = ["Admin", "Refused"]
