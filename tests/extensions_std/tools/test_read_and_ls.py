"""Reading files and folders: what cannot be read, images, names."""

import base64
import errno
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.ports.files import FolderEntry, RealFiles
from camshaft.extensions_std.tools import ToolFailure, create_ls_tool, create_read_tool
from camshaft.extensions_std.tools.images import Image, image_of
from camshaft.kernel.messages import ImageBlock
from tests.extensions_std.tools.calls import Switch, call, context, text

GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
"""One pixel."""


def whole_png(width: int, height: int, *, interlaced: bool = False) -> bytes:
    """A black one."""
    passes = ADAM7 if interlaced else [(0, 0, 1, 1)]
    sizes = [(len(range(x, width, across)), len(range(y, height, down))) for x, y, across, down in passes]
    rows = b"".join([(b"\0" * (columns + 1)) * count for columns, count in sizes if columns])
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x06\x00\x00\x00"


@attrs.define(eq=False)
class Forbidden:
    """Files that exist and may not be looked into."""

    async def kind(self, path: str) -> str:
        await trio.lowlevel.checkpoint()
        return "directory" if path.endswith("folder") else "file"

    async def read(self, path: str) -> bytes:
        await trio.lowlevel.checkpoint()
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    async def list_folder(self, path: str) -> tuple[FolderEntry, ...]:
        await trio.lowlevel.checkpoint()
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


@pytest.mark.rule("TOOL-65", "TOOL-92", "TOOL-57")
async def test_what_may_not_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    files: Any = Forbidden()

    with pytest.raises(ToolFailure, match=r"Cannot read 'a.txt': Permission denied \(EACCES\)"):
        await call(create_read_tool(files=files), {"path": "a.txt"}, context(tmp_path))
    with pytest.raises(ToolFailure, match=r"Cannot read the folder 'folder': Permission denied \(EACCES\)"):
        await call(create_ls_tool(files=files), {"path": "folder"}, context(tmp_path))


@pytest.mark.rule("TOOL-65")
async def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ToolFailure, match="Not a plain file"):
        await call(create_read_tool(), {"path": "pipe"}, context(tmp_path))


@pytest.mark.rule("TOOL-56")
@pytest.mark.parametrize("make", [create_read_tool, create_ls_tool])
async def test_an_aborted_call_reads_nothing(tmp_path: Path, make: Any) -> None:
    switch = Switch()
    switch.give()

    with pytest.raises(ToolFailure, match=r"^Operation aborted$"):
        await call(make(), {"path": "."}, context(tmp_path), switch)


@pytest.mark.rule("TOOL-64")
@pytest.mark.parametrize(
    ("content", "image"),
    [
        (png(3, 4), Image(mime_type="image/png", width=3, height=4)),
        (b"GIF89a\x05\x00\x06\x00", Image(mime_type="image/gif", width=5, height=6)),
        (
            b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x00\x02\x00\x07\x01\x01\x11\x00",
            Image(mime_type="image/jpeg", width=7, height=2),
        ),
        (b"\xff\xd8\xff\xe0\x00", Image(mime_type="image/jpeg")),
        (b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x08\0\0\x09\0\0", Image(mime_type="image/webp", width=9, height=10)),
        (b"RIFF\0\0\0\0WEBPVP8L\x05\0\0\0\x2f\x02\xc0\x00\x00", Image(mime_type="image/webp", width=3, height=4)),
        (b"BM" + b"\0" * 12 + struct.pack("<IiiHH", 40, 11, -12, 1, 24), Image(mime_type="image/bmp", width=11, height=12)),
        (b"BM is how this text begins, and it goes on for a while", None),
        (b"\x89PNG\r\n\x1a\n", None),
        (png(3, 4)[:16], Image(mime_type="image/png")),
        (b"GIF87a", Image(mime_type="image/gif")),
        (b"RIFF\0\0\0\0WEBP", Image(mime_type="image/webp")),
        (b"\xff\xd8\xff\xf7\x00", None),
        (b"RIFF\0\0\0\0WAVEfmt ", None),
        (b"", None),
    ],
)
def test_images_are_known_by_their_first_bytes(content: bytes, image: Image | None) -> None:
    assert image_of(content) == image


@pytest.mark.rule("TOOL-64")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (png(2001, 1), "2001x1 pixels"),
        (png(1, 1) + b"\0" * 3_600_000, "bytes as base64"),
        (b"BM" + b"\0" * 12 + struct.pack("<IiiHH", 40, 1, 1, 1, 24), "bmp would have to be converted"),
        (b"\xff\xd8\xff\xe0\x00", "names no size"),
        (png(1, 1), "damaged"),
        (whole_png(3, 2)[:-16], "damaged"),
        (whole_png(3, 2).replace(b"IDAT", b"IDAX"), "damaged"),
        (GIF[:-3], "damaged"),
        (GIF[:13], "damaged"),
        (b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x08\0\0\x09\0\0", "damaged"),
        (b"\xff\xd8\xff\xc0\x00\x0b\x08\x00\x02\x00\x07\x01\x01\x11\x00\xff\xda\x00\x08", "damaged"),
    ],
)
async def test_an_image_that_would_need_changing_is_only_noted(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a").write_bytes(content)

    result = await call(create_read_tool(), {"path": "a"}, context(tmp_path))

    assert reason in text(result)
    assert [block for block in result.content or () if isinstance(block, ImageBlock)] == []


@pytest.mark.rule("TOOL-64")
@pytest.mark.parametrize(
    "content",
    [
        whole_png(2000, 20),
        whole_png(5, 3, interlaced=True),
        GIF,
        b"\xff\xd8\xff\xc0\x00\x0b\x08\x00\x02\x00\x07\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x11\xff\xd9",
    ],
)
async def test_an_image_within_the_limits_goes_as_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)

    result = await call(create_read_tool(), {"path": "a"}, context(tmp_path))

    assert [block.data for block in result.content or () if isinstance(block, ImageBlock)] == [base64.b64encode(content).decode()]


@pytest.mark.rule("TOOL-50")
@pytest.mark.parametrize("path", ["file://elsewhere/a", "a\0b", "\ud800"])
async def test_a_path_nobody_can_mean_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ToolFailure, match="Bad path"):
        await call(create_read_tool(), {"path": path}, context(tmp_path))


@pytest.mark.rule("TOOL-92")
async def test_a_name_that_is_no_utf_8_is_listed_readably(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff.txt")).touch()

    result = await call(create_ls_tool(files=RealFiles()), {"path": "folder"}, context(tmp_path))

    assert text(result) == "\ufffd.txt"
