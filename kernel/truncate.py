"""Cutting long text to a number of lines and bytes, and saying how much was cut (TOOL-51, TOOL-52).

Sizes in bytes are those of UTF-8, where a lone surrogate counts three. A final newline ends
the last line and begins none; it counts as a byte.
"""

from collections.abc import Iterator
from typing import Final, Literal

import attrs

from camshaft.kernel import shapes

LINES_MAX: Final = 2000
"""Lines of a tool's output the model gets (TOOL-51)."""

OUTPUT_BYTES_MAX: Final = 50 * 1024
"""Bytes of a tool's output the model gets (TOOL-51)."""

LINE_UNITS_MAX: Final = 500
"""UTF-16 units of one line found by a search (TOOL-51)."""

CUT_MARK: Final = "... [truncated]"
"""Ends a line that was cut."""


@shapes.frozen(kw_only=True)
class Truncation:
    """What is left of a text, and what there was; the record in a result's details (TOOL-52)."""

    content: str
    truncated: bool
    truncated_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    last_line_partial: bool
    """Tail only: the last line alone was over the limit, and its end is the content."""
    first_line_exceeds_limit: bool
    """Head only: the first line alone was over the limit, and the content is empty."""
    max_lines: int
    max_bytes: int


def truncate_head(text: str, lines_max: int = LINES_MAX, bytes_max: int = OUTPUT_BYTES_MAX) -> Truncation:
    """The first whole lines within both limits; it never cuts a line."""
    whole = _whole(text, lines_max, bytes_max)
    if not whole.truncated:
        return whole
    if size_of(next(_lines(text))) > bytes_max:
        return attrs.evolve(whole, content="", truncated_by="bytes", output_lines=0, output_bytes=0, first_line_exceeds_limit=True)
    kept, _, by = _taken(_lines(text), lines_max, bytes_max)
    return _cut(whole, "\n".join(kept), len(kept), by)


def truncate_tail(text: str, lines_max: int = LINES_MAX, bytes_max: int = OUTPUT_BYTES_MAX) -> Truncation:
    """The last whole lines within both limits; of a last line alone over the byte limit, its end."""
    whole = _whole(text, lines_max, bytes_max)
    if not whole.truncated:
        return whole
    kept, refused, by = _taken(_lines_backwards(text), lines_max, bytes_max)
    if refused is not None and not kept:
        by = "lines" if lines_max == 1 else "bytes"  # The partial line is a line too, and may be all there may be.
        return attrs.evolve(_cut(whole, _end_of(refused, bytes_max), 1, by), last_line_partial=True)
    return _cut(whole, "\n".join(reversed(kept)), len(kept), by)


def truncate_line(line: str, units_max: int = LINE_UNITS_MAX) -> tuple[str, bool]:
    """The line, cut and marked if it is longer, and whether it was cut. Never splits a character."""
    cut = cut_to_units(line, units_max)
    return (line, False) if len(cut) == len(line) else (cut + CUT_MARK, True)


def cut_to_units(text: str, units_max: int) -> str:
    """The longest beginning of at most `units_max` UTF-16 units that splits no character."""
    if len(text) * 2 <= units_max:
        return text
    start = text[:units_max]
    if start.isascii():
        return start
    encoded = start.encode("utf-16-le", "surrogatepass")
    if len(encoded) <= 2 * units_max:
        return start
    cut = encoded[: 2 * units_max].decode("utf-16-le", "surrogatepass")
    return cut if text.startswith(cut) else cut[:-1]


def size_of(text: str) -> int:
    """The text's size in bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def size_text(size_bytes: int) -> str:
    """`512B`, `1.5KB`, `2.0MB`; the decimal rounds half up (TOOL-51)."""
    if size_bytes < 1024:
        return f"{size_bytes}B"
    unit, name = (1024, "KB") if size_bytes < 1024 * 1024 else (1024 * 1024, "MB")
    tenths = (20 * size_bytes + unit) // (2 * unit)
    return f"{tenths // 10}.{tenths % 10}{name}"


def line_count(text: str) -> int:
    """Lines of the text; a final newline begins none."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def _whole(text: str, lines_max: int, bytes_max: int) -> Truncation:
    """The record of the uncut text, marked truncated if it is over a limit."""
    lines, size = line_count(text), size_of(text)
    return Truncation(
        content=text,
        truncated=lines > lines_max or size > bytes_max,
        truncated_by=None,
        total_lines=lines,
        total_bytes=size,
        output_lines=lines,
        output_bytes=size,
        last_line_partial=False,
        first_line_exceeds_limit=False,
        max_lines=lines_max,
        max_bytes=bytes_max,
    )


def _cut(whole: Truncation, content: str, lines: int, by: Literal["lines", "bytes"]) -> Truncation:
    return attrs.evolve(whole, content=content, truncated_by=by, output_lines=lines, output_bytes=size_of(content))


def _taken(lines: Iterator[str], lines_max: int, bytes_max: int) -> tuple[list[str], str | None, Literal["lines", "bytes"]]:
    """The lines that fit with the newlines between them, the one that did not, and the limit met.

    All of them fit when only the final newline was too much; that counts as the line limit.
    """
    kept: list[str] = []
    size = 0
    while len(kept) < lines_max:
        line = next(lines, None)
        if line is None:
            break
        size += size_of(line) + bool(kept)
        if size > bytes_max:
            return kept, line, "bytes"
        kept.append(line)
    return kept, None, "lines"


def _lines(text: str) -> Iterator[str]:
    start, last = 0, len(text) - text.endswith("\n")
    while start <= last:
        end = text.find("\n", start, last)
        end = last if end < 0 else end
        yield text[start:end]
        start = end + 1


def _lines_backwards(text: str) -> Iterator[str]:
    end = len(text) - text.endswith("\n")
    while end >= 0:
        start = text.rfind("\n", 0, end)
        yield text[start + 1 : end]
        end = start


def _end_of(line: str, bytes_max: int) -> str:
    """The longest end of at most `bytes_max` bytes that splits no character."""
    end = line[max(0, len(line) - bytes_max) :].encode("utf-8", "surrogatepass")
    cut = len(end) - bytes_max
    while 0 < cut < len(end) and end[cut] & 0xC0 == 0x80:
        cut += 1
    return end[max(0, cut) :].decode("utf-8", "surrogatepass")
