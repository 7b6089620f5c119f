"""Entries of resource lists: what they include and leave out."""

import pytest

from camshaft.kernel.path_entries import PathEntries, is_pattern, matches, path_entries


def entries(*listed: str) -> PathEntries:
    return path_entries(listed, lambda path: f"/base/{path}")


@pytest.mark.rule("SET-13")
def test_entries_are_sorted_by_what_they_do_and_names_that_are_no_paths_stay() -> None:
    found = entries("a", "b/*", "!c*", "+d", "-e", "", "!", "-builtin:x", "+package:p/e")

    assert found == PathEntries(
        includes=("/base/a", "/base/b/*"),
        excluded=("/base/c*",),
        forced_in=("/base/d", "package:p/e"),
        forced_out=("/base/e", "builtin:x"),
    )


@pytest.mark.rule("SET-13", "EXT-9")
@pytest.mark.parametrize(
    ("listed", "allowed"),
    [
        ((), True),
        (("!s*",), False),
        (("!other",), True),
        (("!s*", "+s/a"), True),
        (("+s/a", "!s*"), True),
        (("!s*", "+s/a", "-s/a"), False),
        (("+s/a", "-s/a/SKILL.md"), False),
        (("!s/b",), True),
    ],
)
def test_an_exact_exclusion_beats_an_exact_inclusion_and_that_a_pattern(listed: tuple[str, ...], allowed: bool) -> None:
    assert entries(*listed).allows("/base/s/a/SKILL.md", "/base/s/a") is allowed


@pytest.mark.rule("SET-13")
@pytest.mark.parametrize(
    ("pattern", "path", "does"),
    [
        ("/a/*", "/a/b", True),
        ("/a/*", "/a/b/c", True),
        ("/a/*.md", "/a/b/c.md", False),
        ("/a/**/c", "/a/c", True),
        ("/a/**/c", "/a/x/y/c", True),
        ("/a/**", "/a/x/y", True),
        ("/a/?", "/a/bb", False),
        ("/a/[bc]", "/a/c", True),
        ("/a/[!bc]", "/a/c", False),
        ("/a/[", "/a/[", True),
        ("/a/[z-a]", "/a/-", True),
        ("/a.b", "/axb", False),
        ("/a", "/ab", False),
        ("/a/[\\]", "/a/\\", True),
        ("/a/[[:x]", "/a/[", True),
        ("/a/(b", "/a/(b", True),
    ],
)
def test_a_pattern_matches_a_path_or_what_lies_in_it(pattern: str, path: str, does: bool) -> None:
    assert matches(pattern, path) is does


def test_a_path_with_wildcards_is_a_pattern() -> None:
    assert [is_pattern(path) for path in ("/a/b", "/a/*", "/a/?", "/a/[b]")] == [False, True, True, True]
