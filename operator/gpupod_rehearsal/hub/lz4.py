"""LZ4 frames, decoded. Xet clients compress their chunks with it; the Hub has to give the plain bytes back.

Format: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md and lz4_Block_format.md. Checksums are skipped, not
verified: the whole file is checked by its sha256 afterwards.
"""

from __future__ import annotations

_MAGIC = 0x184D2204
_STORED = 0x80000000


def decompress_frame(data: bytes) -> bytes:
    """The content of one LZ4 frame.

    Raises:
        ValueError: not an LZ4 frame, or cut short.
    """
    if int.from_bytes(data[:4], "little") != _MAGIC:
        raise ValueError("not an LZ4 frame")
    flags = data[4]
    block_checksum, has_size, has_dictionary = flags & 0x10, flags & 0x08, flags & 0x01
    position = 7 + (8 if has_size else 0) + (4 if has_dictionary else 0)
    output = bytearray()
    while True:
        header = data[position : position + 4]
        if len(header) < 4:
            raise ValueError("LZ4 frame cut short")
        size = int.from_bytes(header, "little")
        position += 4
        if size == 0:
            return bytes(output)
        block = data[position : position + (size & ~_STORED)]
        position += len(block) + (4 if block_checksum else 0)
        if size & _STORED:
            output += block
        else:
            _decompress_block(block, output)


def _decompress_block(block: bytes, output: bytearray) -> None:
    # Matches may reach back into earlier blocks of the frame, so all blocks share one output.
    position, end = 0, len(block)
    while position < end:
        token = block[position]
        literals, position = _length(block, position + 1, token >> 4)
        output += block[position : position + literals]
        position += literals
        if position >= end:
            return
        offset = block[position] | block[position + 1] << 8
        match, position = _length(block, position + 2, token & 15)
        _copy_match(output, offset, match + 4)


def _length(block: bytes, position: int, nibble: int) -> tuple[int, int]:
    length = nibble
    if nibble == 15:
        while True:
            extra = block[position]
            position += 1
            length += extra
            if extra != 255:
                break
    return length, position


def _copy_match(output: bytearray, offset: int, length: int) -> None:
    start = len(output) - offset
    if offset == 0 or start < 0:
        raise ValueError("LZ4 match outside the output")
    if offset >= length:
        output += output[start : start + length]
        return
    # An overlapping match repeats the last `offset` bytes.
    pattern = bytes(output[start:])
    output += (pattern * (length // offset + 1))[:length]
