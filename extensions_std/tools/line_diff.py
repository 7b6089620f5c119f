"""The shortest line difference of two texts, as a unified patch and as numbered lines to look at (TOOL-84).

Theory of operation. Lines keep their newline, so a missing one at the end is a difference.
Common beginnings and ends are taken off; the middle goes through Myers' greedy search, whose
cost grows with the square of the number of changed lines. Above CHANGES_MAX the middle is
shown as replaced whole: correct, only longer than need be.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

CONTEXT_LINES: Final = 4
"""Unchanged lines around a change (TOOL-84)."""

CHANGES_MAX: Final = 600
"""Removed plus added lines the search looks for; about 0.1 s at worst."""

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")

Tag = str
"""One of ` `, `-`, `+`."""


@attrs.frozen
class DiffLine:
    """One line of a difference, with its newline if it has one."""

    tag: Tag
    text: str
    old_number: int
    """From 1; of an added line, the number of the next old one."""
    new_number: int
    """From 1; of a removed line, the number of the next new one."""


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
    script = _script(_LINE.findall(old), _LINE.findall(new))
    groups = _groups(script)
    first = next((line.new_number for line in script if line.tag != " "), None)
    width = len(str(max(old.count("\n"), new.count("\n")) + 1))
    return LineDiff(diff=_numbered(groups, len(script), width), patch=_patch(path, groups), first_changed_line=first)


@attrs.frozen
class _Group:
    """Lines shown together."""

    start: int
    """Index of the first in the script."""
    lines: Sequence[DiffLine]


def _script(old: list[str], new: list[str]) -> list[DiffLine]:
    """Both texts as one sequence: kept, removed and added lines; of one change, the removed first."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle = _tags(old[head : len(old) - tail], new[head : len(new) - tail])
    return list(_numbered_lines([" "] * head + middle + [" "] * tail, old, new))


def _numbered_lines(tags: list[Tag], old: list[str], new: list[str]) -> Iterator[DiffLine]:
    at_old = at_new = 0
    for tag in tags:
        yield DiffLine(tag, new[at_new] if tag == "+" else old[at_old], at_old + 1, at_new + 1)
        at_old += tag != "+"
        at_new += tag != "-"


def _tags(old: list[str], new: list[str]) -> list[Tag]:
    """Myers' search, forwards with a trace, then backwards along it."""
    whole: list[Tag] = ["-"] * len(old) + ["+"] * len(new)
    if not old or not new:
        return whole
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for changes in range(min(len(whole), CHANGES_MAX) + 1):
        trace.append(dict(furthest))
        for diagonal in range(-changes, changes + 1, 2):
            down = diagonal == -changes or (diagonal != changes and furthest[diagonal - 1] < furthest[diagonal + 1])
            at_old = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            at_new = at_old - diagonal
            while at_old < len(old) and at_new < len(new) and old[at_old] == new[at_new]:
                at_old, at_new = at_old + 1, at_new + 1
            furthest[diagonal] = at_old
            if at_old >= len(old) and at_new >= len(new):
                return _ordered(_walked_back(trace, len(old), len(new)))
    return whole


def _walked_back(trace: list[dict[int, int]], at_old: int, at_new: int) -> list[Tag]:
    tags: list[Tag] = []
    for changes in range(len(trace) - 1, -1, -1):
        furthest, diagonal = trace[changes], at_old - at_new
        down = diagonal == -changes or (diagonal != changes and furthest[diagonal - 1] < furthest[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        old_before = furthest[before]
        new_before = old_before - before
        while at_old > max(old_before, 0) and at_new > max(new_before, 0):
            tags.append(" ")
            at_old, at_new = at_old - 1, at_new - 1
        if changes:
            tags.append("+" if down else "-")
        at_old, at_new = old_before, new_before
    return tags[::-1]


def _ordered(tags: list[Tag]) -> list[Tag]:
    """Within each run of changes the removed lines come first."""
    done: list[Tag] = []
    added = 0
    for tag in [*tags, " "]:
        if tag == "+":
            added += 1
            continue
        if tag == " ":
            done += ["+"] * added
            added = 0
        done.append(tag)
    return done[:-1]


def _groups(script: list[DiffLine]) -> list[_Group]:
    """The changes with their context; two share a group if at most twice the context lies between them."""
    bounds: list[list[int]] = []
    for index, line in enumerate(script):
        if line.tag == " ":
            continue
        if bounds and index - bounds[-1][1] <= 2 * CONTEXT_LINES:
            bounds[-1][1] = index + 1
        else:
            bounds.append([index, index + 1])
    starts_ends = [(max(0, start - CONTEXT_LINES), min(len(script), end + CONTEXT_LINES)) for start, end in bounds]
    return [_Group(start, script[start:end]) for start, end in starts_ends]


def _patch(path: str, groups: list[_Group]) -> str:
    parts = [f"--- {path}\n+++ {path}\n"]
    for group in groups:
        first = group.lines[0]
        old_count = sum([line.tag != "+" for line in group.lines])
        new_count = sum([line.tag != "-" for line in group.lines])
        # A side without lines is named by the line before it, as patch programs expect.
        old_start, new_start = first.old_number - (not old_count), first.new_number - (not new_count)
        parts.append(f"@@ -{old_start},{old_count} +{new_start},{new_count} @@\n")
        parts += [_patch_line(line) for line in group.lines]
    return "".join(parts)


def _patch_line(line: DiffLine) -> str:
    return line.tag + (line.text if line.text.endswith("\n") else line.text + "\n\\ No newline at end of file\n")


def _numbered(groups: list[_Group], total: int, width: int) -> str:
    gap = " " * (width + 2) + "..."
    rows = []
    end = 0
    for group in groups:
        if group.start > end:
            rows.append(gap)
        for line in group.lines:
            number = line.new_number if line.tag == "+" else line.old_number
            rows.append(f"{line.tag}{number:>{width}} {line.text.removesuffix(chr(10))}")
        end = group.start + len(group.lines)
    if groups and end < total:
        rows.append(gap)
    return "\n".join(rows)
