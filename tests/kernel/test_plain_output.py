"""Output as plain text: what is taken out, whole or cut anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from camshaft.kernel.plain_output import WAITING_MAX, plain_piece

CASES = [
    ("plain\ttext\n", "plain\ttext\n"),
    ("x\r\n\x1b[31mred\x1b[0m\n", "x\nred\n"),
    ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
    ("\x1b[?25l\x1b[2K\x1b(Ba\x1b7\x1b8\x1bM\x1b=", "a"),
    ("\x1bPq#0~\x1b\\a\x9b1mb", "ab"),
    ("a\x00b\x07c\x7fd\x85e\ufff9f\ud800", "abcdef"),
    ("ü😀", "ü😀"),
    ("cut \x1b[3", "cut "),
    ("\x1b", ""),
]


@pytest.mark.rule("RPC-75")
@pytest.mark.parametrize(("raw", "plain"), CASES)
def test_sequences_and_control_characters_are_taken_out(raw: str, plain: str) -> None:
    assert plain_piece("", raw, is_last=True).text == plain


def in_pieces(pieces: list[str]) -> str:
    text, waiting = "", ""
    for piece in pieces:
        done = plain_piece(waiting, piece)
        text, waiting = text + done.text, done.waiting
    return text + plain_piece(waiting, "", is_last=True).text


@pytest.mark.rule("RPC-75")
@given(some.lists(some.text("\x1b[]0;m\x07\\PAa\r\n\x9b(", max_size=4), max_size=12))
def test_cleaned_in_pieces_gives_what_the_whole_gives(pieces: list[str]) -> None:
    assert in_pieces(pieces) == plain_piece("", "".join(pieces), is_last=True).text


@pytest.mark.rule("RPC-75")
def test_what_never_ends_is_no_sequence_and_does_not_wait_for_ever() -> None:
    begun = plain_piece("", "\x1b]" + "x" * (WAITING_MAX - 2))
    given_up = plain_piece(begun.waiting, "yy")

    assert (begun.text, given_up.text, given_up.waiting) == ("", "]" + "x" * (WAITING_MAX - 2) + "yy", "")
