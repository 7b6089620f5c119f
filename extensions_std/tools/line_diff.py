"""The shortest line difference of two texts, as a unified patch and as numbered lines to look at (TOOL-84).

Theory of operation. Lines keep their newline, so a missing one at the end is a difference.
Common beginnings and ends are taken off; the middle goes through Myers' greedy search, whose
cost grows with the square of the number of changed lines. Above CHANGES_MAX the middle is
shown as replaced whole: correct, only longer than need be.
"""

import re
from collections.abc import Sequence
from typing import Final

import attrs

CONTEXT_LINES: Final = 4
"""Unchanged lines around a change (TOOL-84)."""

CHANGES_MAX: Final = 600
"""Removed plus added lines the search looks for; about 0.1 s at worst."""

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


@attrs.frozen(kw_only=True)
class LineDiff:
    """What is shown of an edit; field for field the details of the tool's result."""

    diff: str
    """Numbered: unchanged and removed lines carry old numbers, added ones new; gaps are `...`."""
    patch: str
    """Unified, with file headers; hunk headers always have counts."""
    first_changed_line: int | None
    """From 1, in the new text; None if nothing changed."""


def line_diff(path: str, old: str, new: str) -> LineDiff:
    """The difference of two texts of the file that is called `path`."""
    before, after = _LINE.findall(old), _LINE.findall(new)
    changes = _changes(before, after)
    hunks = [_hunk(part, before, after) for part in _neighbours(changes)]
    width = len(str(max(old.count("\n"), new.count("\n")) + 1))
    return LineDiff(
        diff=_numbered(hunks, len(before), width),
        patch=_patch(path, hunks),
        first_changed_line=changes[0].new_start + 1 if changes else None,
    )


@attrs.frozen
class _Change:
    """Old lines that are replaced by new ones; either may be none. Indices from 0, ends exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


@attrs.frozen
class _Hunk:
    """Changes with the lines around them."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int
    rows: Sequence[tuple[str, int, str]]
    """Tag (blank, minus, plus), line number from 1 (of the old text; of the new one for a plus), line."""


def _changes(old: list[str], new: list[str]) -> list[_Change]:
    """The changes in order; between two of them at least one line is kept."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    steps = _steps(old[head : len(old) - tail], new[head : len(new) - tail])
    if steps is None:
        return [_Change(head, len(old) - tail, head, len(new) - tail)]
    done: list[_Change] = []
    for at_old, at_new, removes in steps:
        start = _Change(at_old + head, at_old + head + removes, at_new + head, at_new + head + (not removes))
        if done and (done[-1].old_end, done[-1].new_end) == (start.old_start, start.new_start):
            done[-1] = attrs.evolve(done[-1], old_end=start.old_end, new_end=start.new_end)
        else:
            done.append(start)
    return done


def _steps(old: list[str], new: list[str]) -> list[tuple[int, int, bool]] | None:
    """The fewest single changes: place in the old lines, place in the new ones, whether a line is removed (else added).

    Myers' search, then back along its trace. None if there are more than CHANGES_MAX.
    """
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for changes in range(min(len(old) + len(new), CHANGES_MAX) + 1):
        trace.append(dict(furthest))
        for diagonal in range(-changes, changes + 1, 2):
            down = _comes_from_above(furthest, diagonal, changes)
            at_old = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            at_new = at_old - diagonal
            while at_old < len(old) and at_new < len(new) and old[at_old] == new[at_new]:
                at_old, at_new = at_old + 1, at_new + 1
            furthest[diagonal] = at_old
            if at_old >= len(old) and at_new >= len(new):
                return _walked_back(trace, len(old) - len(new))
    return None


def _comes_from_above(furthest: dict[int, int], diagonal: int, changes: int) -> bool:
    """Whether the best way to this diagonal adds a line (else it removes one)."""
    return diagonal == -changes or (diagonal != changes and furthest[diagonal - 1] < furthest[diagonal + 1])


def _walked_back(trace: list[dict[int, int]], diagonal: int) -> list[tuple[int, int, bool]]:
    steps = []
    for changes in range(len(trace) - 1, 0, -1):
        down = _comes_from_above(trace[changes], diagonal, changes)
        diagonal += 1 if down else -1
        at_old = trace[changes][diagonal]
        steps.append((at_old, at_old - diagonal, not down))
    return steps[::-1]


def _neighbours(changes: list[_Change]) -> list[list[_Change]]:
    """Changes that share a hunk: at most twice the context lies between two of them."""
    parts: list[list[_Change]] = []
    for change in changes:
        if parts and change.old_start - parts[-1][-1].old_end <= 2 * CONTEXT_LINES:
            parts[-1].append(change)
        else:
            parts.append([change])
    return parts


def _hunk(changes: list[_Change], old: list[str], new: list[str]) -> _Hunk:
    first, last = changes[0], changes[-1]
    before = min(first.old_start, CONTEXT_LINES)
    after = min(len(old) - last.old_end, CONTEXT_LINES)
    rows: list[tuple[str, int, str]] = []
    position = first.old_start - before
    for change in changes:
        rows += [(" ", number + 1, old[number]) for number in range(position, change.old_start)]
        rows += [("-", number + 1, old[number]) for number in range(change.old_start, change.old_end)]
        rows += [("+", number + 1, new[number]) for number in range(change.new_start, change.new_end)]
        position = change.old_end
    rows += [(" ", number + 1, old[number]) for number in range(position, position + after)]
    return _Hunk(first.old_start - before, last.old_end + after, first.new_start - before, last.new_end + after, rows)


def _patch(path: str, hunks: list[_Hunk]) -> str:
    parts = [f"--- {path}\n+++ {path}\n"]
    for hunk in hunks:
        old_count, new_count = hunk.old_end - hunk.old_start, hunk.new_end - hunk.new_start
        # A side without lines is named by the line before it, as patch programs expect.
        old_start, new_start = hunk.old_start + (old_count > 0), hunk.new_start + (new_count > 0)
        parts.append(f"@@ -{old_start},{old_count} +{new_start},{new_count} @@\n")
        parts += [tag + (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n") for tag, _, line in hunk.rows]
    return "".join(parts)


def _numbered(hunks: list[_Hunk], old_count: int, width: int) -> str:
    gap = " " * (width + 2) + "..."
    rows = []
    end = 0
    for hunk in hunks:
        if hunk.old_start > end:
            rows.append(gap)
        rows += [f"{tag}{number:>{width}} {line.removesuffix(chr(10))}" for tag, number, line in hunk.rows]
        end = hunk.old_end
    if hunks and end < old_count:
        rows.append(gap)
    return "\n".join(rows)
