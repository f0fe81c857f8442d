"""LZ4 frames as they are on the wire, and frames that are not."""

from __future__ import annotations

import pytest

from gpupod_rehearsal.hub.lz4 import decompress_frame

HEAD = bytes.fromhex("04224d18") + bytes([0x60, 0x40, 0x82])
END = b"\0\0\0\0"


def frame(block: bytes, *, stored: bool = False) -> bytes:
    return HEAD + (len(block) | (0x80000000 if stored else 0)).to_bytes(4, "little") + block + END


def test_literals_and_an_overlapping_match():
    # token: 1 literal, match of 4+5; offset 1: "a" repeated nine times more; then 5 last literals
    assert decompress_frame(frame(b"\x15a\x01\x00\x50bcdef")) == b"a" * 10 + b"bcdef"


def test_long_lengths_and_a_match_that_does_not_overlap():
    literals = bytes(range(200))
    block = bytes([0xFF, 200 - 15]) + literals + (200).to_bytes(2, "little") + bytes([255, 0]) + b"\x10z"
    assert decompress_frame(frame(block)) == literals + (literals * 2)[: 4 + 15 + 255] + b"z"


def test_a_stored_block_is_taken_as_it_is():
    assert decompress_frame(frame(b"plain", stored=True)) == b"plain"


@pytest.mark.parametrize("data", [b"", b"not lz4 at all", HEAD, HEAD + b"\x05\0\0", frame(b"\x15a\x05\x00\x00")])
def test_anything_else_is_refused(data: bytes):
    with pytest.raises(ValueError):
        decompress_frame(data)
