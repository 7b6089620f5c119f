"""Whether an image is whole enough to be sent: a provider refuses the whole request for a broken one (TOOL-64).

Nothing is decoded but the compressed rows of a png, whose size is known beforehand. The other
kinds are walked from block to block: a file that was cut off does not get to its first picture's end.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

_PNG_SAMPLES: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples of a pixel by colour type."""
_ADAM7: Final = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""The passes of an interlaced png: first column and row, steps between columns and rows."""
_JPEG_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
"""Markers without a segment."""
_JPEG_SCAN: Final = 0xDA


def is_damaged(mime_type: str, content: bytes) -> bool:
    """Whether the image cannot be shown; for kinds that are not looked at, False."""
    try:
        match mime_type:
            case "image/png":
                return not _png_is_whole(content)
            case "image/gif":
                return not _gif_has_a_picture(content)
            case "image/jpeg":
                return not _jpeg_has_a_scan(content)
            case "image/webp":
                return len(content) < int.from_bytes(content[4:8], "little") + 8
            case _:
                return False
    except (IndexError, struct.error, zlib.error):
        return True


def _png_is_whole(content: bytes) -> bool:
    rows = list[bytes]()
    expected = 0
    for kind, body in _png_chunks(content):
        if kind == b"IHDR":
            expected = _png_size(body)
        elif kind == b"IDAT":
            rows.append(body)
        elif kind == b"IEND":
            break
    return expected > 0 and len(zlib.decompressobj().decompress(b"".join(rows), expected)) == expected


def _png_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and body of each whole chunk; a wrong checksum ends them."""
    position = 8
    while position + 12 <= len(content):
        end = position + 8 + struct.unpack_from(">I", content, position)[0]
        if content[end : end + 4] != struct.pack(">I", zlib.crc32(content[position + 4 : end])):
            return
        yield content[position + 4 : position + 8], content[position + 8 : end]
        position = end + 4


def _png_size(header: bytes) -> int:
    """Bytes of the rows, each with its filter byte; 0 if the header is none."""
    width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    bits = _PNG_SAMPLES.get(colours, 0) * depth
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    counts = [(-(-(width - x) // across), -(-(height - y) // down)) for x, y, across, down in passes]
    return sum([rows * (1 + -(-columns * bits // 8)) for columns, rows in counts if bits and columns > 0 and rows > 0])


def _gif_has_a_picture(content: bytes) -> bool:
    position = 13 + _colour_table_size(content[10])
    while content[position] == 0x21:
        position = _after_sub_blocks(content, position + 2)
    if content[position] != 0x2C:
        return False
    position += 10 + _colour_table_size(content[position + 9])
    return _after_sub_blocks(content, position + 1) <= len(content)


def _colour_table_size(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after_sub_blocks(content: bytes, position: int) -> int:
    while content[position]:
        position += 1 + content[position]
    return position + 1


def _jpeg_has_a_scan(content: bytes) -> bool:
    position = 2
    while content[position] == 0xFF:
        marker = content[position + 1]
        if marker == _JPEG_SCAN:
            return position + 2 + int.from_bytes(content[position + 2 : position + 4], "big") < len(content)
        if marker == 0xFF or marker in _JPEG_BARE:
            position += 1 if marker == 0xFF else 2
        else:
            position += 2 + struct.unpack_from(">H", content, position + 2)[0]
    return False
