"""Verification by hash: every way in which a prefix may differ from its manifest."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from gatekit.cells import (
    CONTENT,
    NOW,
    cell_spec,
    commit,
    digest_of,
    empty_listing,
    file_entry,
    listing,
    manifest_bytes,
)
from gpupod_operator.api.phases import VerificationState as V
from gpupod_operator.core.artifacts import HubFile, Manifest
from gpupod_operator.core.known import Known, Unknown
from gpupod_operator.core.sweepcell.manifests import NewerFormat, find_trailers, read_manifest
from gpupod_operator.core.sweepcell.verifying import verify

DATA = manifest_bytes("c1")
DIGEST = digest_of(DATA)
TOLD = Known((commit("c1", DATA),))


def check(shown, *, digest: str | None = DIGEST, spec=None, **more):
    return verify(spec or cell_spec(), Known(shown), digest, cell_uid="c1", **more)


def test_a_whole_cell_is_verified_through_lfs_and_plain_git_hashes():
    result = check(listing("c1"))
    assert (result.state, result.verified, result.head) == (V.VERIFIED, 2, "head-1")
    assert result.manifest is not None
    assert result.manifest.digest == DIGEST


def test_the_trailer_vouches_where_the_pod_has_not_spoken():
    assert check(listing("c1"), digest=None, commits=TOLD).state is V.VERIFIED
    for silent in (None, Known(()), Unknown("429"), Known((commit("other", DATA),))):
        assert check(listing("c1"), digest=None, commits=silent).state is V.UNKNOWN


def test_the_hub_that_did_not_answer_is_unknown():
    for silent in (None, Unknown("503")):
        assert verify(cell_spec(), silent, DIGEST).state is V.UNKNOWN


def test_an_empty_prefix_is_missing_and_names_what_was_declared():
    result = check(empty_listing())
    assert (result.state, result.missing) == (V.MISSING, ("eval/metrics.json",))


def test_files_without_a_manifest_are_unknown_and_never_missing():
    shown = listing("c1")
    files = {path: file for path, file in shown.files.items() if not path.startswith("_cell/")}
    assert check(replace(shown, files=files, manifest=None)).state is V.UNKNOWN
    assert check(replace(shown, manifest=None)).state is V.UNKNOWN


@pytest.mark.parametrize(
    ("on_hub", "state", "missing", "mismatched"),
    [
        ({"eval/metrics.json": CONTENT["eval/metrics.json"]}, V.PARTIAL, ("weights/a.bin",), ()),
        ({}, V.PARTIAL, ("eval/metrics.json", "weights/a.bin"), ()),
        ({**CONTENT, "weights/a.bin": b"B" * 64}, V.MISMATCH, (), ("weights/a.bin",)),
        ({**CONTENT, "weights/a.bin": b"A" * 63}, V.MISMATCH, (), ("weights/a.bin",)),
        ({**CONTENT, "eval/metrics.json": b'{"loss": 2}'}, V.MISMATCH, (), ("eval/metrics.json",)),
        ({**CONTENT, "stray.txt": b"x"}, V.VERIFIED, (), ()),
    ],
)
def test_each_file_is_compared_by_size_and_hash(on_hub, state, missing, mismatched):
    result = check(listing("c1", on_hub=on_hub))
    assert (result.state, result.missing, result.mismatched) == (state, missing, mismatched)


def test_the_blob_id_of_an_lfs_file_is_not_taken_for_its_content():
    shown = listing("c1")
    expected = check(shown).manifest
    assert expected is not None
    weights = next(f for f in expected.files if f.path == "weights/a.bin")
    forged = {**shown.files, "weights/a.bin": HubFile("weights/a.bin", weights.size, weights.git_sha1, "0" * 64)}
    assert check(replace(shown, files=forged)).state is V.MISMATCH


def test_a_manifest_that_is_not_the_pods_does_not_verify():
    assert check(listing("c1"), digest="0" * 64).state is V.MISMATCH


def test_a_manifest_of_another_cell_does_not_verify():
    other = listing("c2")
    assert check(other, digest=digest_of(manifest_bytes("c2"))).state is V.MISMATCH


def test_a_trailer_with_another_digest_is_a_mismatch_at_the_same_head_and_unknown_after_a_move():
    other = manifest_bytes("c1", attempt="a2")
    assert check(listing("c1"), commits=Known((commit("c1", other),))).state is V.MISMATCH
    assert check(listing("c1"), commits=Known((commit("c1", other, oid="later"),))).state is V.UNKNOWN


def test_a_manifest_that_lacks_declared_files_is_partial_even_if_all_of_its_own_are_there():
    small = {"weights/a.bin": CONTENT["weights/a.bin"]}
    result = check(listing("c1", small), digest=digest_of(manifest_bytes("c1", small)))
    assert (result.state, result.missing) == (V.PARTIAL, ("eval/metrics.json",))


def test_too_few_files_for_the_globs_are_partial():
    spec = cell_spec(
        source={
            "doneFile": "/d/DONE",
            "artifacts": [{"name": "weights", "path": "/d/weights", "include": ["*.bin"], "minFiles": 2}],
        }
    )
    only = {"weights/a.bin": b"1"}
    result = check(listing("c1", only), digest=digest_of(manifest_bytes("c1", only)), spec=spec)
    assert result.state is V.PARTIAL
    assert "1 of at least 2" in result.missing[0]


def test_files_beyond_an_exact_set_or_of_no_declared_artifact_are_a_mismatch():
    for extra in ("eval/more.json", "unknown/x"):
        content = {**CONTENT, extra: b"x"}
        result = check(listing("c1", content), digest=digest_of(manifest_bytes("c1", content)))
        assert (result.state, result.mismatched) == (V.MISMATCH, (extra,))


def test_long_lists_are_bounded():
    many = {f"weights/{i:03}.bin": b"%d" % i for i in range(50)} | {"eval/metrics.json": b"{}"}
    result = check(listing("c1", many, on_hub={}), digest=digest_of(manifest_bytes("c1", many)))
    assert len(result.missing) == 20


def test_a_newer_format_is_unknown():
    newer = manifest_bytes("c1", format=2)
    assert isinstance(read_manifest(newer), NewerFormat)
    assert check(listing("c1", manifest=newer), digest=digest_of(newer)).state is V.UNKNOWN


DONE = int((NOW - timedelta(minutes=30)).timestamp() * 1e9)
ENTRY = file_entry("eval/metrics.json", b"{}", DONE)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": None}, "format number"),
        ({"cell": []}, "`cell`"),
        ({"attempt": 7}, "`attempt`"),
        ({"files": {}}, "`files`"),
        ({"files": ["x"]}, "not an object"),
        ({"files": [ENTRY, ENTRY]}, "twice"),
        ({"files": [{**ENTRY, "path": "../x"}]}, "leaves"),
        ({"files": [{**ENTRY, "path": "/x"}]}, "leaves"),
        ({"files": [{**ENTRY, "sha256": "xyz"}]}, "hashes"),
        ({"files": [{**ENTRY, "size": True}]}, "whole number"),
        ({"files": [{**ENTRY, "size": -1}]}, "negative"),
        ({"files": [{**ENTRY, "mtimeNs": DONE + 1}]}, "newer than the done file"),
        ({"takenAt": "2026-03-01T11:29:00Z"}, "before the done file"),
        ({"takenAt": "yesterday"}, "not a time"),
        ({"takenAt": "2026-03-01T11:59:00"}, "time zone"),
    ],
)
def test_a_manifest_that_cannot_be_used_says_why_and_does_not_verify(changes, problem):
    data = manifest_bytes("c1", **changes)
    said = read_manifest(data)
    assert isinstance(said, str)
    assert problem in said
    assert check(listing("c1", manifest=data), digest=digest_of(data)).state is V.MISMATCH


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"{" * 100_000])
def test_bytes_that_are_no_json_object_do_not_verify(data):
    assert isinstance(read_manifest(data), str)


def test_a_manifest_is_read_as_it_was_written():
    manifest = read_manifest(DATA)
    assert isinstance(manifest, Manifest)
    assert (manifest.digest, manifest.attempt, manifest.done_file_mtime_ns) == (DIGEST, "a1", DONE)
    assert manifest.size == sum(len(data) for data in CONTENT.values())
    assert json.loads(DATA)["files"][0]["sha256"] == manifest.files[0].sha256


def test_the_newest_commit_of_the_cell_counts_and_broken_trailers_do_not():
    old, new = commit("c1", b"old", oid="1"), commit("c1", b"new", oid="2")
    found = find_trailers((replace(new, message="SweepCell-Uid: c1\nSweepCell-Manifest: nonsense"), new, old), "c1")
    assert found is not None
    assert (found.oid, found.digest, found.attempt) == ("2", digest_of(b"new"), "a1")
    assert find_trailers((old,), "c2") is None
