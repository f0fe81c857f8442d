"""Xet storage as far as an upload needs it: xorbs (packed chunks) and shards (which chunks make which file).

The client talks to it over HTTP, so it also works from a rented pod that shares no folder with the Hub. A shard names a
file's sha256 and its segments; with the xorbs these give the plain bytes, which become an ordinary LFS object.
Formats: the Xet protocol specification (xorb chunk headers of 8 bytes, shard entries of 48 bytes).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from gpupod_rehearsal.hub.blobs import BlobStore
from gpupod_rehearsal.hub.lz4 import decompress_frame

_ENTRY = 48
_HAS_VERIFICATION = 1 << 31
_HAS_SHA256 = 1 << 30
_END_OF_FILES = b"\xff" * 32
_UNCOMPRESSED, _LZ4, _GROUPED_LZ4 = 0, 1, 2


@dataclass(frozen=True)
class Segment:
    """Chunks `start` to `end` (exclusive) of a xorb, `size` bytes when unpacked."""

    xorb: str
    start: int
    end: int
    size: int


class XetStore:
    """Xorbs and shards below `root`."""

    def __init__(self, root: Path) -> None:
        self._xorbs = root / "xorbs"
        self._shards = root / "shards"
        for folder in (self._xorbs, self._shards):
            folder.mkdir(parents=True, exist_ok=True)
        self._files: dict[str, tuple[Segment, ...]] = {}
        for shard in sorted(self._shards.glob("[0-9a-f]*")):
            self._files.update(files_of_shard(shard.read_bytes()))

    def put_xorb(self, digest: str, data: bytes) -> bool:
        """Store a xorb; False when it was there."""
        target = self._xorbs / digest
        if target.exists():
            return False
        _write(target, data)
        return True

    def put_shard(self, data: bytes) -> None:
        """Store a shard and learn its files.

        Raises:
            ValueError: not a shard, or it names a xorb that was never uploaded.
        """
        files = files_of_shard(data)
        for segments in files.values():
            for segment in segments:
                if not (self._xorbs / segment.xorb).exists():
                    raise ValueError(f"xorb {segment.xorb} is not stored")
        _write(self._shards / uuid4().hex, data)
        self._files.update(files)

    async def materialise(self, sha256: str, blobs: BlobStore) -> int | None:
        """Write a Xet file's plain bytes as an LFS object; its size, or None when no shard names that sha256.

        Raises:
            DigestMismatchError: the stored chunks do not make a file of that sha256.
        """
        segments = self._files.get(sha256)
        if segments is None:
            return None
        await asyncio.to_thread(self._unpack, segments, sha256, blobs)
        return sum(segment.size for segment in segments)

    def _unpack(self, segments: tuple[Segment, ...], sha256: str, blobs: BlobStore) -> None:
        incoming = blobs.incoming_file()
        with incoming.open("wb") as stream:
            for segment in segments:
                xorb = (self._xorbs / segment.xorb).read_bytes()
                for index, chunk in enumerate(_packed_chunks(xorb)):
                    if index >= segment.end:
                        break
                    if index >= segment.start:
                        stream.write(_unpacked(*chunk))
        blobs.adopt_lfs(incoming, sha256)


def files_of_shard(shard: bytes) -> dict[str, tuple[Segment, ...]]:
    """The files a shard describes, by sha256 (files without one are left out).

    Raises:
        ValueError: the bytes are not a shard.
    """
    if not shard.startswith(b"HFRepoMetaData\0"):
        raise ValueError("not a shard")
    files: dict[str, tuple[Segment, ...]] = {}
    position = _ENTRY
    while True:
        header = shard[position : position + _ENTRY]
        if len(header) < _ENTRY:
            raise ValueError("shard cut short")
        if header[:32] == _END_OF_FILES:
            return files
        flags, count = struct.unpack_from("<II", header, 32)
        position += _ENTRY
        segments = tuple(_segment(shard, position + index * _ENTRY) for index in range(count))
        position += count * _ENTRY * (2 if flags & _HAS_VERIFICATION else 1)
        if flags & _HAS_SHA256:
            files[hash_text(shard[position : position + 32])] = segments
            position += _ENTRY


def hash_text(raw: bytes) -> str:
    """A Xet hash in the client's text form: four little-endian 64-bit words."""
    return "".join(f"{word:016x}" for word in struct.unpack("<4Q", raw))


def _segment(shard: bytes, position: int) -> Segment:
    _, size, start, end = struct.unpack_from("<4I", shard, position + 32)
    return Segment(hash_text(shard[position : position + 32]), start, end, size)


def _packed_chunks(xorb: bytes) -> Iterator[tuple[int, bytes, int]]:
    position = 0
    while position + 8 <= len(xorb) and xorb[position] == 0:
        packed = int.from_bytes(xorb[position + 1 : position + 4], "little")
        plain = int.from_bytes(xorb[position + 5 : position + 8], "little")
        yield xorb[position + 4], xorb[position + 8 : position + 8 + packed], plain
        position += 8 + packed


def _unpacked(scheme: int, data: bytes, size: int) -> bytes:
    if scheme == _UNCOMPRESSED:
        return data
    if scheme == _LZ4:
        return decompress_frame(data)
    if scheme == _GROUPED_LZ4:
        return _ungrouped(decompress_frame(data), size)
    raise ValueError(f"unknown xorb compression {scheme}")


def _ungrouped(grouped: bytes, size: int) -> bytes:
    # "Byte grouping 4": all first bytes of every 4-byte group, then all second ones, and so on.
    plain = bytearray(size)
    position = 0
    for lane in range(4):
        length = (size - lane + 3) // 4
        plain[lane::4] = grouped[position : position + length]
        position += length
    return bytes(plain)


def _write(target: Path, data: bytes) -> None:
    incoming = target.with_name(f".{uuid4().hex}")
    incoming.write_bytes(data)
    incoming.replace(target)
