"""Upload permits of the LFS batch call: each names one object; holding its url is the only credential a PUT has."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class LfsGrant:
    """A permit to upload the object `sha256` of `size` bytes, in one piece or in numbered parts."""

    grant_id: str
    sha256: str
    size: int
    parts: dict[int, Path] = field(default_factory=dict)


class LfsGrants:
    """All permits of this run; they do not survive a restart, as presigned urls do not survive their time."""

    def __init__(self) -> None:
        self._grants: dict[str, LfsGrant] = {}

    def issue(self, sha256: str, size: int) -> LfsGrant:
        grant = LfsGrant(secrets.token_urlsafe(18), sha256, size)
        self._grants[grant.grant_id] = grant
        return grant

    def find(self, grant_id: str) -> LfsGrant | None:
        return self._grants.get(grant_id)
