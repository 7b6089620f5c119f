"""Reading files and folders: what cannot be read, images, names."""

import base64
import errno
import os
import struct
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
        (b"BM" + b"\0" * 12 + struct.pack("<Iii", 40, 11, -12), Image(mime_type="image/bmp", width=11, height=12)),
        (b"BM is how this text begins, and it goes on for a while", None),
        (b"\x89PNG\r\n\x1a\n", None),
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
        (b"BM" + b"\0" * 12 + struct.pack("<Iii", 40, 1, 1), "bmp would have to be converted"),
        (b"\xff\xd8\xff\xe0\x00", "names no size"),
    ],
)
async def test_an_image_that_would_need_changing_is_only_noted(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a").write_bytes(content)

    result = await call(create_read_tool(), {"path": "a"}, context(tmp_path))

    assert reason in text(result)
    assert [block for block in result.content or () if isinstance(block, ImageBlock)] == []


@pytest.mark.rule("TOOL-64")
async def test_an_image_within_the_limits_goes_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(png(2000, 2000))

    result = await call(create_read_tool(), {"path": "a"}, context(tmp_path))

    assert [block.data for block in result.content or () if isinstance(block, ImageBlock)] == [base64.b64encode(png(2000, 2000)).decode()]


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
