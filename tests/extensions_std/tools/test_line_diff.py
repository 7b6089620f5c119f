"""The difference is right, as short as can be, and says the same twice."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from camshaft.extensions_std.tools.line_diff import CHANGES_MAX, line_diff

LINES = re.compile(r"[^\n]*\n|[^\n]+")
TEXTS = some.lists(some.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=14).map("".join)
ENDINGS = some.sampled_from(["", "a", "z"])


def applied(patch: str, old: str) -> tuple[str, int]:
    """The new text, and the number of changed lines."""
    rows, source, made, changed, position = patch.splitlines(keepends=True)[2:], LINES.findall(old), list[str](), 0, 0
    for index, row in enumerate(rows):
        header = re.fullmatch(r"@@ -(\d+),(\d+) \+\d+,\d+ @@\n", row)
        if header:
            start = int(header[1]) - (header[2] != "0")
            made += source[position:start]
            position = start
        elif row[0] in " -+":
            text = row[1:].removesuffix("\n") if index + 1 < len(rows) and rows[index + 1][0] == "\\" else row[1:]
            if row[0] != "+":
                assert source[position] == text
                position += 1
            if row[0] != "-":
                made.append(text)
            changed += row[0] != " "
    return "".join(made + source[position:]), changed


def fewest_changes(old: str, new: str) -> int:
    """By the longest common subsequence, the slow and certain way."""
    a, b = LINES.findall(old), LINES.findall(new)
    row = [0] * (len(b) + 1)
    for left in a:
        before = row
        row = [0]
        for index, right in enumerate(b):
            row.append(before[index] + 1 if left == right else max(before[index + 1], row[index]))
    return len(a) + len(b) - 2 * row[-1]


@given(TEXTS, ENDINGS, TEXTS, ENDINGS)
@pytest.mark.rule("TOOL-84")
def test_the_patch_gives_the_new_text_with_the_fewest_changes(old: str, old_end: str, new: str, new_end: str) -> None:
    before, after = old + old_end, new + new_end

    shown = line_diff("a.txt", before, after)

    assert applied(shown.patch, before) == (after, fewest_changes(before, after))
    assert sum([row[:1] in "+-" for row in shown.diff.split("\n") if row]) == fewest_changes(before, after)
    assert (shown.first_changed_line is None) == (before == after)


def test_a_text_that_becomes_empty_is_named_by_line_zero() -> None:
    assert line_diff("a", "x\n", "").patch == "--- a\n+++ a\n@@ -1,1 +0,0 @@\n-x\n"
    assert line_diff("a", "", "x\n").patch == "--- a\n+++ a\n@@ -0,0 +1,1 @@\n+x\n"


def test_a_text_rewritten_beyond_the_search_is_shown_as_replaced() -> None:
    old = "".join([f"old {number}\n" for number in range(CHANGES_MAX)])
    new = "".join([f"new {number}\n" for number in range(CHANGES_MAX)])

    shown = line_diff("a", f"same\n{old}same\n", f"same\n{new}same\n")

    assert applied(shown.patch, f"same\n{old}same\n") == (f"same\n{new}same\n", 2 * CHANGES_MAX)
