"""Finding what an edit wants to replace: exactly, or read loosely (TOOL-81, TOOL-82).

Theory of operation. All edits are looked for in the text as it was. If each is found as it
stands, that is the match. If one is not, all are looked for in the folded text: NFKC, blanks
at line ends dropped, typographic quotes, dashes and spaces as their ASCII kin. Folding works
line by line and keeps the number of lines, so a folded range has its lines in the file: those
are rewritten whole, from the folded text; all others keep their bytes. Whether a text occurs
once is always counted in the folded text, for a model cannot see the difference.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import attrs

from camshaft.extensions_std.tools.failures import ToolFailure
from camshaft.extensions_std.tools.text_file import Replacement, TextFile, line_starts, unified_newlines

_BLANKS: Final = " \t\x0b\x0c\u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What is dropped at the end of a line."""
_FOLDED: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys(["\u00a0", *map(chr, range(0x2000, 0x200B)), "\u202f", "\u205f", "\u3000"], " "),
}
"""Typographic characters and what people type for them."""


@attrs.frozen(kw_only=True)
class Edit:
    """One wish; both texts with LF for each line end."""

    old: str
    new: str


@attrs.frozen(kw_only=True)
class _Match:
    number: int
    """Index of the edit."""
    start: int
    end: int
    new: str


def replacements(file: TextFile, edits: Sequence[Edit], shown: str) -> list[Replacement]:
    """Where the edits apply, sorted. Raises ToolFailure if one cannot, naming the file as `shown` (TOOL-81)."""
    if not edits:
        raise ToolFailure(f"No edits for {shown!r}; expected at least one")
    for number, edit in enumerate(edits):
        if not edit.old:
            raise ToolFailure(f"{_named(edits, number)} is empty in the call for {shown!r}; expected the text to replace")
    folded = fold(file.text)
    exact = all([edit.old in file.text for edit in edits])
    searched = file.text if exact else folded
    matches = []
    for number, edit in enumerate(edits):
        start = _found(searched, folded, edits, number, shown)
        length = len(edit.old if exact else fold(edit.old))
        matches.append(_Match(number=number, start=start, end=start + length, new=edit.new))
    matches.sort(key=lambda match: match.start)
    _check_overlaps(matches, shown)
    if exact:
        return [Replacement(start=match.start, end=match.end, text=match.new) for match in matches]
    return _whole_lines(file, folded, matches)


def edit_of(old: str, new: str) -> Edit:
    """The edit a model asked for, whatever its line ends."""
    return Edit(old=unified_newlines(old), new=unified_newlines(new))


def fold(text: str) -> str:
    """The loose reading of a text; it has as many lines."""
    normal = text if text.isascii() else unicodedata.normalize("NFKC", text)
    # Not one regular expression: it would try each blank of a long run anew.
    stripped = "\n".join([line.rstrip(_BLANKS) for line in normal.split("\n")])
    if stripped.isascii():
        return stripped
    for odd, plain in _FOLDED.items():  # `translate` takes ten times as long.
        stripped = stripped.replace(odd, plain)
    return stripped


def _found(searched: str, folded: str, edits: Sequence[Edit], number: int, shown: str) -> int:
    old = edits[number].old
    wanted = fold(old)
    loose = searched is folded
    start = searched.find(wanted if loose else old) if wanted or not loose else -1
    if start < 0:
        raise ToolFailure(
            f"{_named(edits, number)} was not found in {shown!r}. It must match the file exactly, blanks and line ends included"
        )
    count = folded.count(wanted) if wanted else 0
    count = count or searched.count(old)
    if count > 1:
        raise ToolFailure(f"{_named(edits, number)} occurs {count} times in {shown!r}; add text around it until it occurs once")
    return start


def _check_overlaps(matches: list[_Match], shown: str) -> None:
    for before, after in zip(matches, matches[1:]):
        if before.end > after.start:
            raise ToolFailure(f"edits[{before.number}] and edits[{after.number}] overlap in {shown!r}; make them one edit")


def _named(edits: Sequence[Edit], number: int) -> str:
    return f"edits[{number}].oldText" if len(edits) > 1 else "oldText"


def _whole_lines(file: TextFile, folded: str, matches: list[_Match]) -> list[Replacement]:
    """The matches in the folded text as replacements of the lines they touch; lines shared by matches are written once."""
    starts = line_starts(folded)
    groups: list[tuple[int, int, list[_Match]]] = []
    for match in matches:
        first = bisect_right(starts, match.start) - 1
        last = bisect_right(starts, max(match.end - 1, match.start)) - 1
        if groups and first <= groups[-1][1]:
            groups[-1] = (groups[-1][0], max(last, groups[-1][1]), [*groups[-1][2], match])
        else:
            groups.append((first, last, [match]))
    own_starts = line_starts(file.text)
    return [_group_replacement((own_starts, len(file.text)), (starts, folded), group) for group in groups]


def _group_replacement(own: tuple[list[int], int], loose: tuple[list[int], str], group: tuple[int, int, list[_Match]]) -> Replacement:
    """`own`: line starts and length of the file's text; `loose`: line starts of the folded text, and the text."""
    (starts, folded), (first, last, matches) = loose, group
    # Up to the last line's ending, which keeps its bytes unless a match takes it in.
    folded_end = _line_end(starts, len(folded), last)
    parts = []
    position = starts[first]
    for match in matches:
        parts += [folded[position : match.start], match.new]
        position = match.end
    parts.append(folded[position:folded_end])
    end = _line_end(*own, last) + (matches[-1].end > folded_end)
    return Replacement(start=own[0][first], end=end, text="".join(parts))


def _line_end(starts: list[int], length: int, line: int) -> int:
    """Where the line ends, before its newline."""
    return starts[line + 1] - 1 if line + 1 < len(starts) else length
