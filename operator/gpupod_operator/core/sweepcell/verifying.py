"""Is a cell on the Hub? Decided by hashes against one listing, never by names, counts or a successful call."""

from __future__ import annotations

from dataclasses import dataclass

from gpupod_operator.api.phases import VerificationState
from gpupod_operator.api.sweepcell import SweepCellSpec
from gpupod_operator.core.artifacts import HubCommit, HubListing, Manifest, ManifestFile
from gpupod_operator.core.known import Fact, Known, Unknown
from gpupod_operator.core.sweepcell.manifests import (
    MANIFEST_PATH,
    NewerFormat,
    Trailers,
    find_trailers,
    read_manifest,
)

MAX_NAMED = 20
"""Bound of the file lists in status (api.md)."""


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """`verified` counts the files with equal size and hash; the lists hold at most 20 paths each, sorted.

    UNKNOWN permits nothing and changes nothing; MISSING says that nothing of the cell is there.
    `head` is the commit that was listed, None when there was no listing. `why` is a sentence for people.
    """

    state: VerificationState
    why: str
    head: str | None = None
    verified: int = 0
    missing: tuple[str, ...] = ()
    mismatched: tuple[str, ...] = ()
    manifest: Manifest | None = None
    trailers: Trailers | None = None


def verify(
    spec: SweepCellSpec,
    listing: Fact[HubListing] | None,
    expected_digest: str | None,
    *,
    cell_uid: str | None = None,
    commits: Fact[tuple[HubCommit, ...]] | None = None,
) -> VerificationResult:
    """Compare one listing of the cell's prefix with the manifest in it.

    `expected_digest` comes from the agent's state file or from an earlier verification. Without it the trailer of the
    cell's commit has to vouch for the manifest: then `commits` is needed and without it the answer is UNKNOWN.
    """
    if not isinstance(listing, Known):
        why = listing.why if isinstance(listing, Unknown) else "the Hub was not asked"
        return VerificationResult(VerificationState.UNKNOWN, why)
    hub = listing.value
    if not hub.files:
        missing = _declared(spec) or (MANIFEST_PATH,)
        return VerificationResult(
            VerificationState.MISSING, "nothing of the cell is on the Hub", hub.head, missing=_named(missing)
        )
    if hub.manifest is None:
        if MANIFEST_PATH in hub.files:
            return VerificationResult(VerificationState.UNKNOWN, "the manifest was listed but not read", hub.head)
        return VerificationResult(
            VerificationState.UNKNOWN, "files are on the Hub without a manifest that says what they should be", hub.head
        )
    manifest = read_manifest(hub.manifest)
    if isinstance(manifest, NewerFormat):
        why = f"the manifest has format {manifest.format}, which this operator does not know"
        return VerificationResult(VerificationState.UNKNOWN, why, hub.head)
    if isinstance(manifest, str):
        return _bad_manifest(hub, f"the manifest on the Hub cannot be used: {manifest}")
    return _against(spec, hub, manifest, expected_digest, cell_uid, commits)


def _against(
    spec: SweepCellSpec,
    hub: HubListing,
    manifest: Manifest,
    expected_digest: str | None,
    cell_uid: str | None,
    commits: Fact[tuple[HubCommit, ...]] | None,
) -> VerificationResult:
    if cell_uid is not None and manifest.cell_uid != cell_uid:
        why = f"the manifest on the Hub belongs to another cell (uid {manifest.cell_uid[:64]!r})"
        return _bad_manifest(hub, why, manifest)
    if expected_digest is not None and manifest.digest != expected_digest:
        return _bad_manifest(hub, "the manifest on the Hub is not the one taken on the pod", manifest)
    trailers = find_trailers(commits.value, manifest.cell_uid) if isinstance(commits, Known) else None
    if trailers is not None and trailers.digest != manifest.digest:
        if isinstance(commits, Known) and commits.value[0].oid != hub.head:
            why = "the head moved between the listing and the reading of the commits"
            return VerificationResult(VerificationState.UNKNOWN, why, hub.head, manifest=manifest)
        return _bad_manifest(hub, f"the manifest on the Hub differs from the one commit {trailers.oid} names", manifest)
    if trailers is None and expected_digest is None:
        why = "no commit that was read names the manifest, and the pod has not confirmed it"
        return VerificationResult(VerificationState.UNKNOWN, why, hub.head, manifest=manifest)
    missing = sorted(f.path for f in manifest.files if f.path not in hub.files)
    mismatched = sorted(f.path for f in manifest.files if f.path in hub.files and not _equal(f, hub))
    uncovered, surplus = _coverage(spec, manifest)
    verified = len(manifest.files) - len(missing) - len(mismatched)
    state, why = VerificationState.VERIFIED, f"{verified} files equal by size and hash at {hub.head}"
    if missing or uncovered:
        state = VerificationState.PARTIAL
        why = f"{len(missing)} files of the manifest are not on the Hub, {len(uncovered)} declared ones not in it"
    if mismatched or surplus:
        state, why = VerificationState.MISMATCH, f"{len(mismatched) + len(surplus)} files differ from what was declared"
    return VerificationResult(
        state,
        why,
        hub.head,
        verified,
        _named((*missing, *uncovered)),
        _named((*mismatched, *surplus)),
        manifest,
        trailers,
    )


def _equal(expected: ManifestFile, hub: HubListing) -> bool:
    found = hub.files[expected.path]
    if found.size != expected.size:
        return False
    # For an LFS file the blob id is the hash of the pointer text, so it says nothing about the content.
    return found.sha256 == expected.sha256 if found.sha256 is not None else found.blob_id == expected.git_sha1


def _coverage(spec: SweepCellSpec, manifest: Manifest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Declared files that the manifest lacks, and files it has beyond an exact declaration."""
    uncovered: list[str] = []
    surplus: list[str] = []
    for artifact in spec.source.artifacts:
        taken = {f.path for f in manifest.files if f.artifact == artifact.name}
        if artifact.files:
            declared = {f"{artifact.name}/{name}" for name in artifact.files}
            uncovered += sorted(declared - taken)
            surplus += sorted(taken - declared)
        elif len(taken) < (artifact.min_files or 1):
            uncovered.append(f"{artifact.name}/ ({len(taken)} of at least {artifact.min_files or 1} files)")
    names = {artifact.name for artifact in spec.source.artifacts}
    surplus += sorted(f.path for f in manifest.files if f.artifact not in names)
    return tuple(uncovered), tuple(surplus)


def _bad_manifest(hub: HubListing, why: str, manifest: Manifest | None = None) -> VerificationResult:
    return VerificationResult(VerificationState.MISMATCH, why, hub.head, mismatched=(MANIFEST_PATH,), manifest=manifest)


def _declared(spec: SweepCellSpec) -> tuple[str, ...]:
    return tuple(f"{a.name}/{name}" for a in spec.source.artifacts for name in a.files or ())


def _named(paths: tuple[str, ...]) -> tuple[str, ...]:
    return paths[:MAX_NAMED]
