from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from gpupod_operator.core.provider import Failure
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.keys import KeySource

FIRST, SECOND = b"rpa_FIRSTKEY12345\n", b"rpa_SECONDKEY6789\n"


def mount(directory: Path, version: str, data: bytes) -> Path:
    """A Secret as the kubelet mounts it: the file is a link through `..data`, which is swapped."""
    target = directory / version
    target.mkdir()
    (target / "key").write_bytes(data)
    fresh = directory / "..data_tmp"
    fresh.symlink_to(version)
    fresh.rename(directory / "..data")
    path = directory / "key"
    if not path.is_symlink():
        path.symlink_to("..data/key")
    return path


def test_the_fingerprint_is_of_the_key_without_its_line_end():
    key = KeySource.from_bytes(FIRST).current()
    assert key.value == "rpa_FIRSTKEY12345"
    assert key.fingerprint == hashlib.sha256(b"rpa_FIRSTKEY12345").hexdigest()[:12]


def test_a_replaced_mount_is_read_again(tmp_path: Path):
    source = KeySource.from_file(mount(tmp_path, "v1", FIRST))
    before = source.current()
    assert source.current() is before
    mount(tmp_path, "v2", SECOND)
    assert source.current().value == "rpa_SECONDKEY6789"


def test_a_rewrite_in_place_is_read_again(tmp_path: Path):
    path = tmp_path / "key"
    path.write_bytes(FIRST)
    source = KeySource.from_file(path)
    assert source.current().value == "rpa_FIRSTKEY12345"
    path.write_bytes(b"rpa_FIRSTKEY99999\n")
    os.utime(path, ns=(1, 1))
    assert source.current().value == "rpa_FIRSTKEY99999"


def test_a_replacement_of_the_same_length_and_time_is_read_again(tmp_path: Path):
    path, fresh = tmp_path / "key", tmp_path / "next"
    path.write_bytes(b"rpa_FIRSTKEY12345\n")
    fresh.write_bytes(b"rpa_FIRSTKEY99999\n")
    for file in (path, fresh):
        os.utime(file, ns=(1, 1))
    source = KeySource.from_file(path)
    assert source.current().value == "rpa_FIRSTKEY12345"
    fresh.rename(path)
    assert source.current().value == "rpa_FIRSTKEY99999"


def test_a_vanished_file_leaves_the_last_key_and_says_so(tmp_path: Path):
    path = tmp_path / "key"
    path.write_bytes(FIRST)
    source = KeySource.from_file(path)
    before = source.current()
    path.unlink()
    assert source.current() == before
    assert source.problem is not None
    assert str(path) in source.problem
    path.write_bytes(SECOND)
    assert source.current().value == "rpa_SECONDKEY6789"
    assert source.problem is None


def test_a_spoiled_file_leaves_the_last_key_and_says_so(tmp_path: Path):
    path = tmp_path / "key"
    path.write_bytes(FIRST)
    source = KeySource.from_file(path)
    before = source.current()
    path.write_bytes(b"")
    assert source.current() == before
    assert source.problem is not None
    assert "empty" in source.problem


def test_a_file_that_never_held_a_key_is_refused_with_its_name(tmp_path: Path):
    with pytest.raises(ProviderError, match="nowhere cannot be read") as refused:
        KeySource.from_file(tmp_path / "nowhere").current()
    assert refused.value.failure is Failure.UNAUTHORIZED


@pytest.mark.parametrize("data", [b"", b" \n", b"rpa_x y", b"rpa_x\ny", b"rpa_x\xc3\xa9", b"rpa_x\x00"])
def test_what_cannot_be_a_key_is_refused_without_being_shown(data: bytes):
    with pytest.raises(ProviderError) as refused:
        KeySource.from_bytes(data)
    assert refused.value.failure is Failure.UNAUTHORIZED
    assert "rpa_x" not in str(refused.value)


def test_no_representation_shows_the_key(tmp_path: Path):
    path = tmp_path / "key"
    path.write_bytes(FIRST)
    source = KeySource.from_file(path)
    shown = f"{source.current()!r} {source!r} {source.current()} {KeySource.from_bytes(FIRST)!r}"
    assert "FIRSTKEY" not in shown
    assert source.current().fingerprint in shown
