"""Paths and the volumes they lie on."""

from __future__ import annotations

from pathlib import PurePosixPath


def on_mount(path: str, mount: str) -> bool:
    """`path` is the mount or below it, compared by whole components; a path with `..` is on no mount."""
    parts = PurePosixPath(path)
    return ".." not in parts.parts and parts.is_relative_to(PurePosixPath(mount))
