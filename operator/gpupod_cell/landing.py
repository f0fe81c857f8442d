"""Take one finished cell to the Hub: list first, one commit, list again.

A failed commit call says nothing about its outcome, and a successful one does not prove that the files are there.
So the listing decides both times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gpupod_cell import manifest
from gpupod_cell.manifest import Manifest
from gpupod_cell.refusal import AMBIGUOUS, BAD_INPUT, HOUR, Refusal
from gpupod_cell.walk import Walk


class Entry(Protocol):
    """A file of a listing, as far as it is compared."""

    def holds(self, file: manifest.Hashed) -> bool: ...


class Made(Protocol):
    """A commit that was made or found."""

    @property
    def oid(self) -> str: ...
    @property
    def at(self) -> str | None: ...


class Destination(Protocol):
    """What is needed of the Hub; every method raises Refusal."""

    def listing(self) -> Mapping[str, Entry]: ...
    def manifest(self) -> bytes: ...
    def find_commit(self, uid: str, digest: str) -> Made | None: ...
    def commit(self, seen: Walk, taken: Manifest, *, title: str, description: str) -> str: ...


@dataclass(frozen=True)
class Landed:
    """`manifest` is the one on the Hub. `oid` is None when its commit is too old to be found by its trailers."""

    manifest: Manifest
    oid: str | None
    at: str | None
    adopted: bool


def land(hub: Destination, seen: Walk, taken: Manifest, *, title: str, description: str) -> Landed:
    """Make the cell be on the Hub, or say why it is not. Raises Refusal."""
    there = _look(hub, taken)
    if there is not None:
        return _adopt(hub, there)
    try:
        oid = hub.commit(seen, taken, title=title, description=description)
    except Refusal as refusal:
        if not refusal.ambiguous:
            raise
        return _after_unclear(hub, taken, refusal)
    _confirm(hub, taken, oid)
    return Landed(taken, oid, None, adopted=False)


def _look(hub: Destination, taken: Manifest) -> Manifest | None:
    """The manifest on the Hub if it already holds this cell, None if there is work. Raises Refusal `Mismatch`."""
    listing = hub.listing()
    prior = _prior(hub, listing)
    same_owner = prior is not None and prior.uid == taken.uid
    differing = [f for f in taken.files if f.path in listing and not listing[f.path].holds(f)]
    if prior is not None and same_owner and not differing and _equal(prior, taken):
        if all(f.path in listing for f in taken.files):
            return prior
        return None
    ours = {f.path: f for f in prior.files} if prior is not None and same_owner else {}
    foreign = [f.path for f in differing if f.path not in ours or not listing[f.path].holds(ours[f.path])]
    if foreign or (prior is not None and not same_owner and not _renewed(prior, taken, differing)):
        what = ", ".join(foreign[:5]) or manifest.PATH
        raise Refusal(
            "Mismatch",
            f"the destination holds other content that is not an earlier version of this cell: {what}; "
            "nothing is overwritten unasked: choose another path, or remove it from the Hub",
            BAD_INPUT,
            retry_after=HOUR,
        )
    if manifest.PATH in listing and prior is None:
        raise Refusal(
            "Mismatch",
            f"{manifest.PATH} at the destination is not a manifest of ours; remove it or choose another path",
            BAD_INPUT,
            retry_after=HOUR,
        )
    return None


def _prior(hub: Destination, listing: Mapping[str, Entry]) -> Manifest | None:
    if manifest.PATH not in listing:
        return None
    try:
        return manifest.read(hub.manifest())
    except ValueError:
        return None


def _equal(prior: Manifest, taken: Manifest) -> bool:
    """Same files, and taken of the same done file: an older one would not prove anything about this run."""
    same_done = (prior.done_mtime_ns, prior.done_size) == (taken.done_mtime_ns, taken.done_size)
    mine = {(f.path, f.size, f.sha256) for f in taken.files}
    return same_done and mine == {(f.path, f.size, f.sha256) for f in prior.files}


def _renewed(prior: Manifest, taken: Manifest, differing: list[manifest.Hashed]) -> bool:
    """The SweepCell was deleted and applied again: same name, same bytes, new uid. Only its manifest is renewed."""
    return not differing and (prior.namespace, prior.name) == (taken.namespace, taken.name)


def _adopt(hub: Destination, there: Manifest) -> Landed:
    found = hub.find_commit(there.uid, there.digest)
    return Landed(there, found.oid if found else None, found.at if found else None, adopted=True)


def _after_unclear(hub: Destination, taken: Manifest, refusal: Refusal) -> Landed:
    text = f"the answer to the commit was lost ({refusal.message})"
    try:
        there = _look(hub, taken)
    except Refusal as second:
        raise Refusal(
            "Ambiguous", f"{text} and the Hub could not be asked: {second.message}", AMBIGUOUS, ambiguous=True
        ) from second
    if there is None:
        raise Refusal("Ambiguous", f"{text}; it is not on the Hub yet", AMBIGUOUS, ambiguous=True) from refusal
    return _adopt(hub, there)


def _confirm(hub: Destination, taken: Manifest, oid: str) -> None:
    listing = hub.listing()
    missing = [f.path for f in taken.files if f.path not in listing or not listing[f.path].holds(f)]
    if not missing:
        return
    if manifest.PATH in listing:
        raise Refusal(
            "IgnoredByHub",
            f"commit {oid} was accepted but {len(missing)} files are not in it (first: {missing[0]}); "
            "a .gitignore of the repository drops them: change it or the file names",
            BAD_INPUT,
            retry_after=6 * HOUR,
        )
    raise Refusal("Ambiguous", f"commit {oid} was accepted but is not listed yet", AMBIGUOUS, ambiguous=True)
