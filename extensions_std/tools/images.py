"""Images recognised by their first bytes, with their size in pixels (TOOL-64).

There is no image library here, so nothing is decoded, resized or converted: png, jpg, gif and
webp within the limits go to the model as they are. What would need changing is only noted:
images over the limits of MOD-4, bmp (no provider takes it), and files whose header names no
size. A file that merely begins like an image, without a complete header, is text.
"""

import struct
from typing import Final

import attrs

PIXELS_MAX: Final = 2000
"""Longest side in pixels (MOD-4)."""

BASE64_BYTES_MAX: Final = int(4.5 * 1024 * 1024)
"""Size of the base64 text (MOD-4)."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_BMP_HEADERS: Final = frozenset({12, 40, 52, 56, 64, 108, 124})
"""Sizes of the second header there are; another number means that the file is something else."""
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
    if content.startswith(_PNG):
        return _png(content)
    if content.startswith(b"\xff\xd8\xff"):
        return _jpeg(content)
    if content.startswith((b"GIF87a", b"GIF89a")) and len(content) >= 10:
        return _sized("image/gif", *struct.unpack_from("<HH", content, 6))
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return _webp(content)
    if content.startswith(b"BM") and len(content) >= 26 and struct.unpack_from("<I", content, 14)[0] in _BMP_HEADERS:
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
    return None


def _sized(mime_type: str, width: int, height: int) -> Image:
    return Image(mime_type=mime_type, width=width, height=height)


def _png(content: bytes) -> Image | None:
    if content[12:16] != b"IHDR" or len(content) < 24:
        return None
    return _sized("image/png", *struct.unpack_from(">II", content, 16))


def _jpeg(content: bytes) -> Image:
    position = 2
    while position + 9 < len(content) and content[position] == 0xFF:
        marker = content[position + 1]
        if marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", content, position + 5)
            return _sized("image/jpeg", width, height)
        if marker == 0xFF or marker in _JPEG_BARE:
            position += 1 if marker == 0xFF else 2
        else:
            position += 2 + struct.unpack_from(">H", content, position + 2)[0]
    return Image(mime_type="image/jpeg")


def _webp(content: bytes) -> Image | None:
    kind = content[12:16]
    if kind == b"VP8X" and len(content) >= 30:
        width, height = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27))
        return _sized("image/webp", width, height)
    if kind == b"VP8L" and len(content) >= 25:
        bits = int.from_bytes(content[21:25], "little")
        return _sized("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 " and len(content) >= 30:
        width, height = struct.unpack_from("<HH", content, 26)
        return _sized("image/webp", width & 0x3FFF, height & 0x3FFF)
    return None


def _bmp(content: bytes) -> Image:
    if struct.unpack_from("<I", content, 14)[0] == 12:
        return _sized("image/bmp", *struct.unpack_from("<HH", content, 18))
    width, height = struct.unpack_from("<ii", content, 18)
    return _sized("image/bmp", abs(width), abs(height))
