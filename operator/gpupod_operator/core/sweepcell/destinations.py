"""One destination, one cell: which of two cells with overlapping paths keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from gpupod_operator.api.sweepcell import Destination


@dataclass(frozen=True, slots=True)
class Claim:
    """A cell's claim on its destination."""

    name: str
    uid: str
    created_at: datetime
    destination: Destination


def overlapping(mine: Claim, others: Iterable[Claim]) -> str | None:
    """The name of the oldest cell (creationTimestamp, then uid) that is older and whose paths overlap, or None."""
    rivals = [o for o in others if o.uid != mine.uid and _age(o) < _age(mine) and _overlap(o, mine)]
    return min(rivals, key=_age).name if rivals else None


def _age(claim: Claim) -> tuple[datetime, str]:
    return claim.created_at, claim.uid


def _overlap(one: Claim, two: Claim) -> bool:
    a, b = one.destination, two.destination
    # The Hub takes repository names without regard to case.
    if (a.repo.lower(), a.type, a.revision) != (b.repo.lower(), b.type, b.revision):
        return False
    first, second = PurePosixPath(a.path.strip("/")), PurePosixPath(b.path.strip("/"))
    return first.is_relative_to(second) or second.is_relative_to(first)
