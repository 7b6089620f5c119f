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
    exact = not any([_only_loosely(edit, file.text, folded) for edit in edits])
    searched = file.text if exact else folded
    matches = []
    for number, edit in enumerate(edits):
        # In the folded text too, a text that stands there as it is wins over its loose reading.
        wanted = edit.old if exact or edit.old in folded else fold(edit.old)
        start = searched.find(wanted) if wanted else -1
        _check_once(start, folded, edits, number, shown)
        matches.append(_Match(number=number, start=start, end=start + len(wanted), new=edit.new))
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


def _only_loosely(edit: Edit, text: str, folded: str) -> bool:
    return edit.old not in text and fold(edit.old) in folded


def _check_once(start: int, folded: str, edits: Sequence[Edit], number: int, shown: str) -> None:
    """Raises ToolFailure if the edit's text was not found (`start` < 0), or occurs more than once in the folded text."""
    wanted = fold(edits[number].old)
    # A text that folds to nothing occurs between any two characters.
    count = folded.count(wanted) if wanted else len(folded.encode("utf-16-le")) // 2 - 1
    if start < 0 and (wanted or count < 2):
        raise ToolFailure(
            f"{_named(edits, number)} was not found in {shown!r}. It must match the file exactly, blanks and line ends included"
        )
    if count > 1:
        raise ToolFailure(f"{_named(edits, number)} occurs {count} times in {shown!r}; add text around it until it occurs once")


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
    own_starts, ends = line_starts(file.text), [*starts[1:], len(folded)]
    own_ends = [*own_starts[1:], len(file.text)]
    return [
        Replacement(
            start=own_starts[first],
            end=own_ends[last],
            text=_rewritten(folded, starts[first], ends[last], touching),
        )
        for first, last, touching in groups
    ]


def _rewritten(folded: str, start: int, end: int, matches: list[_Match]) -> str:
    """This range of the folded text, the matches in it replaced."""
    parts = []
    for match in matches:
        parts += [folded[start : match.start], match.new]
        start = match.end
    return "".join([*parts, folded[start:end]])
