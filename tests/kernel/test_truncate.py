"""Cutting text to lines, bytes and units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.truncate import cut_to_units, line_count, size_of, size_text, truncate_head, truncate_line, truncate_tail

TEXT = st.text(st.sampled_from("ab\né😀\ud83d\r"), max_size=40)
LIMIT = st.integers(0, 12)


@given(TEXT, LIMIT, LIMIT)
def test_head_is_whole_lines_from_the_start_within_both_limits(text: str, lines_max: int, bytes_max: int) -> None:
    cut = truncate_head(text, lines_max, bytes_max)

    assert text.startswith(cut.content)
    assert not cut.truncated or (cut.output_lines <= lines_max and cut.output_bytes <= bytes_max)
    assert cut.content in ("", text) or text[len(cut.content)] == "\n"
    assert (cut.total_lines, cut.total_bytes, cut.output_bytes) == (line_count(text), size_of(text), size_of(cut.content))


@given(TEXT, LIMIT, LIMIT)
def test_tail_is_the_end_within_both_limits(text: str, lines_max: int, bytes_max: int) -> None:
    cut = truncate_tail(text, lines_max, bytes_max)

    assert text.endswith(cut.content) or text.removesuffix("\n").endswith(cut.content)
    assert not cut.truncated or (cut.output_lines <= lines_max and cut.output_bytes <= bytes_max)
    assert cut.truncated == (cut.truncated_by is not None)


@given(TEXT, TEXT)
def test_text_within_the_limits_is_untouched(first: str, second: str) -> None:
    text = first + second

    assert truncate_head(text).content == truncate_tail(text).content == text


@given(TEXT, LIMIT)
def test_cut_to_units_never_splits_a_character(text: str, units_max: int) -> None:
    cut = cut_to_units(text, units_max)

    def units(part: str) -> int:
        return len(part.encode("utf-16-le", "surrogatepass")) // 2

    assert text.startswith(cut)
    assert units(cut) <= units_max
    assert cut == text or units(text[: len(cut) + 1]) > units_max


@pytest.mark.parametrize(("lines_max", "by"), [(1, "lines"), (2, "bytes")])
def test_partial_last_line_counts_as_a_line(lines_max: int, by: str) -> None:
    """TOOL-52."""
    cut = truncate_tail("a\nbcdef", lines_max, 3)

    assert (cut.content, cut.last_line_partial, cut.truncated_by) == ("def", True, by)


def test_long_line_is_cut_and_marked() -> None:
    assert truncate_line("x" * 501) == ("x" * 500 + "... [truncated]", True)
    assert truncate_line("x" * 500) == ("x" * 500, False)


@pytest.mark.parametrize(("size", "text"), [(0, "0B"), (1023, "1023B"), (1280, "1.3KB"), (51200, "50.0KB"), (1310720, "1.3MB")])
def test_sizes_print_with_one_decimal_that_rounds_half_up(size: int, text: str) -> None:
    assert size_text(size) == text
