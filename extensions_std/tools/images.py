"""Images recognised by their first bytes, with their size in pixels (TOOL-64).

There is no image library here, so nothing is decoded, resized or converted: png, jpg, gif and
webp within the limits go to the model as they are. What would need changing is only noted:
images over the limits of MOD-4, bmp (no provider takes it), and files whose header names no
size, and files that are damaged. The first bytes decide: what begins like an image is no text.
"""

import struct
from typing import Final

import attrs

from camshaft.extensions_std.tools.image_damage import is_damaged

PIXELS_MAX: Final = 2000
"""Longest side in pixels (MOD-4)."""

BASE64_BYTES_MAX: Final = int(4.5 * 1024 * 1024)
"""Size of the base64 text (MOD-4)."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_BMP_HEADERS: Final = frozenset({12, 40, 52, 56, 64, 108, 124})
"""Sizes of the second header there are; another number means that the file is something else."""
_BMP_BYTES_MIN: Final = 30
"""Up to the number of bits of a pixel."""
_JPEG_LOSSLESS: Final = b"\xf7"
"""The marker right at the start of JPEG-LS, which is another format."""
_JPEG_BARE: Final = frozenset({0x01, *range(0xD0, 0xDA)})
"""Markers without a segment."""
_JPEG_SIZES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a frame header, which holds the size."""


@attrs.frozen(kw_only=True)
class Image:
    """What the header says."""

    mime_type: str
    width: int | None = None
    """Pixels; None if the header does not say."""
    height: int | None = None


def image_of(content: bytes) -> Image | None:
    """The image, or None if this is none of the five kinds."""
    if content.startswith(_PNG) and content[12:16] == b"IHDR":
        return _sized("image/png", content, ">II", 16)
    if content.startswith(b"\xff\xd8\xff") and content[3:4] != _JPEG_LOSSLESS:
        return _jpeg(content)
    if content.startswith((b"GIF87a", b"GIF89a")):
        return _sized("image/gif", content, "<HH", 6)
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return _webp(content)
    if content.startswith(b"BM") and len(content) >= 26:
        return _bmp(content)
    return None


def why_not_shown(image: Image, content: bytes) -> str | None:
    """Why a model cannot get this image as it is, or None if it can."""
    if image.mime_type == "image/bmp":
        return "bmp would have to be converted to png first"
    if not image.width or not image.height:
        return "its header names no size"
    if max(image.width, image.height) > PIXELS_MAX:
        return f"{image.width}x{image.height} pixels, at most {PIXELS_MAX} a side; make it smaller first"
    size = (len(content) + 2) // 3 * 4
    if size > BASE64_BYTES_MAX:
        return f"{size} bytes as base64, at most {BASE64_BYTES_MAX}; make it smaller first"
    return "it is damaged or cut off" if is_damaged(image.mime_type, content) else None


def _sized(mime_type: str, content: bytes, numbers: str, place: int) -> Image:
    """The image with the width and height that stand at a place, or without them if the content ends before."""
    if len(content) < place + struct.calcsize(numbers):
        return Image(mime_type=mime_type)
    width, height = struct.unpack_from(numbers, content, place)
    return Image(mime_type=mime_type, width=abs(width), height=abs(height))


def _jpeg(content: bytes) -> Image:
    position = 2
    while position + 9 < len(content) and content[position] == 0xFF:
        marker = content[position + 1]
        if marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", content, position + 5)
            return Image(mime_type="image/jpeg", width=width, height=height)
        if marker == 0xFF or marker in _JPEG_BARE:
            position += 1 if marker == 0xFF else 2
        else:
            position += 2 + struct.unpack_from(">H", content, position + 2)[0]
    return Image(mime_type="image/jpeg")


def _webp(content: bytes) -> Image:
    kind = content[12:16]
    width = height = None
    if kind == b"VP8X" and len(content) >= 30:
        width, height = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27))
    if kind == b"VP8L" and len(content) >= 25:
        bits = int.from_bytes(content[21:25], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(content) >= 30:
        width, height = (size & 0x3FFF for size in struct.unpack_from("<HH", content, 26))
    return Image(mime_type="image/webp", width=width, height=height)


def _bmp(content: bytes) -> Image | None:
    header = struct.unpack_from("<I", content, 14)[0]
    if header == 12:
        return _sized("image/bmp", content, "<HH", 18)
    if header not in _BMP_HEADERS or len(content) < _BMP_BYTES_MIN:
        return None
    return _sized("image/bmp", content, "<ii", 18)
