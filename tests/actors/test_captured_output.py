"""Output taken in pieces gives what the whole gives."""

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as some

from camshaft.actors.captured_output import HALF_BYTES, CapturedOutput
from camshaft.actors.ports.files import PrivateFile
from camshaft.kernel.truncate import Truncation, truncate_tail


@attrs.define(eq=False)
class Kept:
    """A spill file in memory."""

    path: str = "/spill"
    content: bytearray = attrs.field(factory=bytearray)

    async def write(self, data: bytes) -> None:
        self.content += data
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        pass


def captured(chunks: list[bytes]) -> tuple[CapturedOutput, Kept]:
    """The output after all of the chunks."""
    kept = Kept()

    async def open_spill() -> PrivateFile:
        await trio.lowlevel.checkpoint()
        return kept

    async def take() -> CapturedOutput:
        output = CapturedOutput(open_spill)
        for chunk in chunks:
            await output.add(chunk)
        await output.finish()
        return output

    return trio.run(take), kept


def whole(chunks: list[bytes]) -> Truncation:
    return truncate_tail(b"".join(chunks).decode("utf-8", "replace"))


PIECES = some.sampled_from([b"a", b"\n", b"\xc3", b"\xa9", "é日😀".encode(), b"\xff", b"x" * 700 + b"\n", b"y" * 9000, b"\n" * 900])


@given(some.lists(PIECES, max_size=60))
def test_the_tail_and_its_record_are_those_of_the_whole_text(chunks: list[bytes]) -> None:
    output, kept = captured(chunks)

    assert output.tail() == whole(chunks)
    assert bytes(kept.content) == (b"".join(chunks) if whole(chunks).truncated else b"")
    assert output.for_programs().text == b"".join(chunks).decode("utf-8", "replace")


@pytest.mark.slow
@settings(max_examples=15)
@given(some.lists(some.sampled_from(["é" * 70_000, "日" * 50_001 + "\n", "\n" * 3000, "x" * 300_000]), min_size=8, max_size=14))
def test_a_long_output_keeps_true_counts_and_both_ends(texts: list[str]) -> None:
    chunks = [text.encode() for text in texts]
    raw = b"".join(chunks)

    output, kept = captured(chunks)

    assert output.tail() == whole(chunks)
    assert bytes(kept.content) == raw
    for_programs = output.for_programs()
    assert for_programs.truncated == (len(raw) > 2 * HALF_BYTES)
    assert for_programs.text.startswith(raw[: HALF_BYTES - 3].decode("utf-8", "ignore"))
    assert for_programs.text.endswith(raw[3 - HALF_BYTES :].decode("utf-8", "ignore"))
    assert "\ufffd" not in for_programs.text


@given(some.lists(some.sampled_from([b"a", b"\n", b"bb\ncc", b"\n\n", b"d\n"]), max_size=12))
def test_the_size_of_the_last_line_is_the_true_one(chunks: list[bytes]) -> None:
    text = b"".join(chunks).decode()

    assert captured(chunks)[0].last_line_size == len(text.removesuffix("\n").rpartition("\n")[2])


def test_a_spill_file_ends_where_its_disk_did(tmp_path: Path) -> None:
    @attrs.define(eq=False)
    class Small:
        path: str = "/small"

        async def write(self, _data: bytes) -> None:
            await trio.lowlevel.checkpoint()
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            pass

    async def take() -> Any:
        async def open_spill() -> PrivateFile:
            await trio.lowlevel.checkpoint()
            return Small()

        output = CapturedOutput(open_spill)
        for _ in range(40):
            await output.add(b"x\n" * 2000)
        await output.finish()
        return output

    output = trio.run(take)

    assert output.spill_error is not None
    assert output.tail().total_lines == 80_000
