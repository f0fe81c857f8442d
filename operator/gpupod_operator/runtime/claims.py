"""Which cells may contend for a destination, kept up to date cell by cell.

`core.sweepcell.destinations` decides between claims. Only claims with one path above the other have to do with each
other, so it is asked about those alone: a pass of one cell among thousands looks at its own branch of the tree.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from gpupod_operator.api.sweepcell import Destination
from gpupod_operator.api.times import parse_time
from gpupod_operator.core.sweepcell.destinations import Claim, overlapping
from gpupod_operator.runtime.store import Key

log = logging.getLogger("gpupod_operator.cells")

Path = tuple[str, ...]
Repository = tuple[str, str, str]
"""Name in lower case, type, revision. The Hub knows no namespaces."""


@dataclass(slots=True)
class _Tree:
    """One repository's claims: `at` exactly this path, and `below` it or at it."""

    at: defaultdict[Path, set[Key]] = field(default_factory=lambda: defaultdict(set))
    below: defaultdict[Path, set[Key]] = field(default_factory=lambda: defaultdict(set))


class Claims:
    """Fed with every committed SweepCell; a destination is parsed when it is new or differs, and never again."""

    def __init__(self) -> None:
        self._claims: dict[Key, Claim] = {}
        self._written: dict[Key, tuple[str, Any]] = {}
        """Uid and destination as they stand in the object: what the claim was parsed from."""
        self._trees: dict[Repository, _Tree] = {}

    def changed(self, key: Key, raw: Mapping[str, Any] | None) -> frozenset[str]:
        """Take in a new version (None: the cell is gone). Returns the uids that a claim given up stood in the way of.

        What a cell newly claims it claims as the youngest, so it stands in nobody's way.
        """
        written = (raw["metadata"]["uid"], raw["spec"].get("destination")) if raw is not None else None
        if written is not None and self._written.get(key) == written:
            return frozenset()
        freed = self._drop(key)
        if raw is not None and written is not None:
            self._written[key] = written
            self._add(key, raw)
        return freed

    def rival(self, key: Key) -> str | None:
        """The name of the older cell that keeps the destination, None for a cell that may have it."""
        mine = self._claims.get(key)
        if mine is None:
            return None
        return overlapping(mine, (self._claims[other] for other in self._near(mine)))

    def _add(self, key: Key, raw: Mapping[str, Any]) -> None:
        metadata = raw["metadata"]
        try:
            destination = Destination.model_validate(raw["spec"].get("destination"))
            claim = Claim(metadata["name"], metadata["uid"], parse_time(metadata["creationTimestamp"]), destination)
        except ValueError as error:
            # its own pass says so; it cannot be uploaded to by anybody who cannot read it
            log.warning("a destination cannot be read by this version: %s", error, extra={"cell": "/".join(key)})
            return
        self._claims[key] = claim
        tree = self._trees.setdefault(_repository(claim), _Tree())
        path = _path(claim)
        tree.at[path].add(key)
        for above in _up(path):
            tree.below[above].add(key)

    def _drop(self, key: Key) -> frozenset[str]:
        self._written.pop(key, None)
        claim = self._claims.pop(key, None)
        if claim is None:
            return frozenset()
        tree = self._trees[_repository(claim)]
        path = _path(claim)
        _take(tree.at, path, key)
        for above in _up(path):
            _take(tree.below, above, key)
        freed = frozenset(self._claims[other].uid for other in self._near(claim))
        if not tree.at:
            del self._trees[_repository(claim)]
        return freed

    def _near(self, claim: Claim) -> Iterator[Key]:
        """Cells whose path is the claim's, above it or below it."""
        tree = self._trees.get(_repository(claim))
        if tree is None:
            return
        path = _path(claim)
        yield from tree.below.get(path, ())
        for above in _up(path):
            if above != path:
                yield from tree.at.get(above, ())


def _repository(claim: Claim) -> Repository:
    where = claim.destination
    return where.repo.lower(), str(where.type), where.revision


def _path(claim: Claim) -> Path:
    return PurePosixPath(claim.destination.path.strip("/")).parts


def _up(path: Path) -> Iterator[Path]:
    """The path itself and every one above it, to the root of the repository."""
    return (path[:length] for length in range(len(path), -1, -1))


def _take(sets: defaultdict[Path, set[Key]], path: Path, key: Key) -> None:
    sets[path].discard(key)
    if not sets[path]:
        del sets[path]
