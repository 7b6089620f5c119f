"""Bytes that are not replaced stay; what is read again is what was meant."""

from hypothesis import given
from hypothesis import strategies as some

from camshaft.extensions_std.tools.edit_matching import fold
from camshaft.extensions_std.tools.text_file import Replacement, text_file

PIECES = some.sampled_from([b"a", b"\r", b"\n", b"\r\n", "é".encode(), "😀".encode(), b"\xff", b"\xe2\x82", b"\xf0\x9f\x98", b"\x00", b" "])
CONTENTS = some.lists(PIECES, max_size=20).map(b"".join)


def shown(content: bytes) -> str:
    """The text as `read` shows it, with one kind of line end and without a mark."""
    return content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


@given(CONTENTS, some.booleans())
def test_the_text_is_what_a_reader_sees_and_without_changes_all_bytes_stay(content: bytes, marked: bool) -> None:
    whole = (b"\xef\xbb\xbf" if marked else b"") + content
    file = text_file(whole)

    assert file.text == shown(whole)
    assert file.replaced([]) == whole
    assert file.replaced([Replacement(start=0, end=0, text="")]) == whole


@given(CONTENTS, some.tuples(some.integers(0, 30), some.integers(0, 30)), some.sampled_from(["", "x", "x\ny", "\n"]))
def test_a_replacement_changes_the_text_there_and_no_byte_elsewhere(content: bytes, where: tuple[int, int], new: str) -> None:
    file = text_file(content)
    start, end = sorted([min(each, len(file.text)) for each in where])

    changed = file.replaced([Replacement(start=start, end=end, text=new)])

    if "\ufffd" not in file.text:  # Two halves of a bad sequence may become a character.
        assert shown(changed) == file.text[:start] + new + file.text[end:]
    assert changed.startswith(file.replaced([Replacement(start=start, end=len(file.text), text="")]).removesuffix(b"\r"))
    assert changed.endswith(file.replaced([Replacement(start=0, end=end, text="")]).removeprefix(b"\n"))


@given(some.text(alphabet="a é\u00a0\u2003\u201c\u2014\n\t\u0301ﬁＡ", max_size=30))
def test_folding_keeps_the_number_of_lines_and_is_done_once(text: str) -> None:
    folded = fold(text)

    assert folded.count("\n") == text.count("\n")
    assert all(line == line.rstrip() for line in folded.split("\n"))
