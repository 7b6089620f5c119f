"""Edits and writes: all or nothing, one after the other, and what an abort leaves."""

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from camshaft.actors.ports.files import RealFiles
from camshaft.extensions_std.tools import ToolFailure, create_edit_tool, create_write_tool
from camshaft.extensions_std.tools.edit import prepare_edit_arguments
from tests.extensions_std.tools.calls import Switch, call, context, text

OLD_NEW = {"oldText": "a", "newText": "b"}


def edits(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"oldText": old, "newText": new} for old, new in pairs]


@pytest.mark.rule("TOOL-54")
async def test_two_edits_of_one_file_through_a_link_both_arrive(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("one\ntwo\n")
    (tmp_path / "link.txt").symlink_to("real.txt")
    tool, ctx = create_edit_tool(), context(tmp_path)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, tool, {"path": "real.txt", "edits": edits(("one", "ONE"))}, ctx)
        nursery.start_soon(call, tool, {"path": "link.txt", "edits": edits(("two", "TWO"))}, ctx)

    assert (tmp_path / "real.txt").read_text() == "ONE\nTWO\n"
    assert (tmp_path / "link.txt").is_symlink()


@pytest.mark.rule("TOOL-54")
async def test_many_writes_of_one_file_end_with_the_last_request(tmp_path: Path) -> None:
    tool, ctx = create_write_tool(), context(tmp_path)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(call, tool, {"path": "a.txt", "content": str(number) * 1000}, ctx)
            await trio.testing.wait_all_tasks_blocked()

    assert (tmp_path / "a.txt").read_text() == "19" * 1000


@attrs.define(eq=False)
class AbortedWhileWriting:
    """Real files; the abort comes while a write is on its way."""

    switch: Switch
    files: RealFiles = attrs.field(factory=RealFiles)

    async def write(self, path: str, data: bytes) -> None:
        self.switch.give()
        await self.files.write(path, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)


@pytest.mark.rule("TOOL-55")
async def test_an_abort_during_the_write_leaves_it_done_and_reports_the_abort(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    switch = Switch()
    tool = create_edit_tool(files=AbortedWhileWriting(switch))

    with pytest.raises(ToolFailure, match=r"^Operation aborted$"):
        await call(tool, {"path": "a.txt", "edits": [OLD_NEW]}, context(tmp_path), switch)

    assert (tmp_path / "a.txt").read_text() == "b\n"


@pytest.mark.rule("TOOL-56")
@pytest.mark.parametrize("make", [create_edit_tool, create_write_tool])
async def test_an_aborted_call_changes_nothing(tmp_path: Path, make: Any) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    switch = Switch()
    switch.give()

    with pytest.raises(ToolFailure, match=r"^Operation aborted$"):
        await call(make(), {"path": "a.txt", "edits": [OLD_NEW], "content": "b"}, context(tmp_path), switch)

    assert (tmp_path / "a.txt").read_text() == "a\n"


@pytest.mark.rule("TOOL-81")
async def test_a_missing_file_is_named_with_the_code(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match=r"Cannot edit 'no.txt'.*ENOENT"):
        await call(create_edit_tool(), {"path": "no.txt", "edits": [OLD_NEW]}, context(tmp_path))


@pytest.mark.rule("TOOL-81")
async def test_one_bad_edit_of_several_changes_nothing_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a b a\n")

    with pytest.raises(ToolFailure, match=r"edits\[1\]\.oldText occurs 2 times"):
        await call(create_edit_tool(), {"path": "a.txt", "edits": edits(("b", "x"), ("a", "y"))}, context(tmp_path))

    assert (tmp_path / "a.txt").read_text() == "a b a\n"


@pytest.mark.rule("TOOL-82")
async def test_loose_matching_rewrites_touched_lines_and_keeps_the_bytes_of_others(tmp_path: Path) -> None:
    content = b"\xff keep\xe2\x80\x9d  \r\nsay \xe2\x80\x9chi\xe2\x80\x9d  \r\n\xfe tail \xe2\x80\x94"
    (tmp_path / "a.txt").write_bytes(content)

    await call(create_edit_tool(), {"path": "a.txt", "edits": edits(('say "hi"\n', "say\nbye\n"))}, context(tmp_path))

    assert (tmp_path / "a.txt").read_bytes() == b"\xff keep\xe2\x80\x9d  \r\nsay\r\nbye\r\n\xfe tail \xe2\x80\x94"


@pytest.mark.rule("TOOL-83")
@pytest.mark.parametrize(
    ("content", "old", "changed"),
    [
        ("a\rb\rc", "b", "a\rx\ry\rc"),
        ("a\r\nb\rc\n", "b", "a\r\nx\ny\rc\n"),
        ("a\nb\rc\r\n", "b", "a\nx\r\ny\rc\r\n"),
        ("a\r\nb\rc", "c", "a\r\nb\rx\r\ny"),
    ],
)
async def test_a_lone_carriage_return_lends_its_kind_only_where_there_is_no_line_feed(
    tmp_path: Path, content: str, old: str, changed: str
) -> None:
    assert await edited(tmp_path, content, (old, "x\ny")) == changed


@pytest.mark.rule("TOOL-82")
@pytest.mark.parametrize(
    ("content", "pairs", "changed"),
    [
        ("one \r\ntwo\nthree\n", [("one\ntwo", "1\n2")], "1\r\n2\r\nthree\n"),
        ("x\n\u2013one\ry\n", [("-one", "1")], "x\n1\ny\n"),
        ("\u2013a\nb\r\nc\u2013\r\n", [("-a\nb", "1"), ("c-", "2")], "1\n2\r\n"),
        ("a\u2013 b\n", [("- ", "x")], "axb\n"),
        ("a b\nz\u2013\n", [("a ", "x "), ("z-", "q")], "x b\nq\n"),
    ],
)
async def test_loosely_matched_lines_are_rewritten_with_their_ends(
    tmp_path: Path, content: str, pairs: list[tuple[str, str]], changed: str
) -> None:
    assert await edited(tmp_path, content, *pairs) == changed


@pytest.mark.rule("TOOL-81")
@pytest.mark.parametrize(
    ("content", "pairs", "refusal"),
    [
        ("a  b\n", [("  ", "x")], r"^oldText occurs 4 times"),
        ("x\u00a0y", [("  ", "x")], r"^oldText occurs 2 times"),
        ("e\u0301 \nz", [("e", "x"), ("q", "y")], r"^edits\[1\]\.oldText was not found"),
        ("e\u0301\nz\u2013", [("e", "x"), ("z-", "y")], r"^edits\[0\]\.oldText was not found"),
    ],
)
async def test_what_cannot_be_found_once_in_the_folded_text_is_refused(
    tmp_path: Path, content: str, pairs: list[tuple[str, str]], refusal: str
) -> None:
    with pytest.raises(ToolFailure, match=refusal):
        await edited(tmp_path, content, *pairs)


async def edited(folder: Path, content: str, *pairs: tuple[str, str]) -> str:
    """What becomes of a file with this content."""
    (folder / "a.txt").write_bytes(content.encode())
    await call(create_edit_tool(), {"path": "a.txt", "edits": edits(*pairs)}, context(folder))
    return (folder / "a.txt").read_bytes().decode()


@pytest.mark.rule("TOOL-80")
@pytest.mark.parametrize(
    ("given", "prepared"),
    [
        ({"edits": '[{"oldText":"a","newText":"b"}]'}, {"edits": [OLD_NEW]}),
        ({"edits": '{"oldText":"a","newText":"b"}'}, {"edits": [OLD_NEW]}),
        ({"edits": OLD_NEW}, {"edits": [OLD_NEW]}),
        (OLD_NEW, {"edits": [OLD_NEW]}),
        ({"edits": [OLD_NEW], "oldText": "c", "newText": "d"}, {"edits": [OLD_NEW, {"oldText": "c", "newText": "d"}]}),
        ({"edits": "no json"}, {"edits": "no json"}),
        ({"edits": "[NaN]"}, {"edits": "[NaN]"}),
        ({"edits": "[" * 100_000}, {"edits": "[" * 100_000}),
        ({"edits": "3", **OLD_NEW}, {"edits": [OLD_NEW]}),
        ({"edits": {"oldText": "c"}, **OLD_NEW}, {"edits": [OLD_NEW]}),
        ({"edits": {"oldText": "c"}}, {"edits": {"oldText": "c"}}),
        ({"edits": '{"oldText":"c"}'}, {"edits": '{"oldText":"c"}'}),
        ({"oldText": "a"}, {"oldText": "a"}),
        ([1], [1]),
    ],
)
def test_what_models_send_instead_of_a_list_is_read_as_one(given: Any, prepared: Any) -> None:
    before = repr(given)

    assert prepare_edit_arguments(given) == prepared
    assert repr(given) == before


@pytest.mark.rule("TOOL-86")
async def test_a_write_creates_folders_and_says_how_much(tmp_path: Path) -> None:
    result = await call(create_write_tool(), {"path": "a/b/c.txt", "content": "é\ud83d\ude00\ud800"}, context(tmp_path))

    assert text(result) == "Wrote 9 bytes to a/b/c.txt"
    assert (tmp_path / "a/b/c.txt").read_bytes() == "é😀\ufffd".encode()
