"""File name patterns as fd and ripgrep read them, as regular expressions (TOOL-91).

`*` and `?` stop at `/`; `**` as a whole component stands for any number of components;
`[a-z]`, `[!a-z]` and `[^a-z]`; `{a,b}`, also nested; a backslash takes the next character as
it is. Without an upper-case letter in the pattern, letters of ASCII match in either case.
"""

import re
from typing import Final

_ANY_START: Final = "(?:/?|.*/)"
_ANY_MIDDLE: Final = "(?:/|/.*/)"


class BadGlob(Exception):
    """The pattern is malformed; the message says where."""


def glob_expression(pattern: str) -> re.Pattern[str]:
    """The expression that fully matches what the pattern does. Raises BadGlob."""
    flags = re.DOTALL if any(letter.isupper() for letter in pattern) else re.DOTALL | re.IGNORECASE | re.ASCII
    body, at = _alternatives(pattern, 0, nested=False)
    if at < len(pattern):
        raise BadGlob(f"unopened alternation in {pattern!r} at character {at + 1}")
    try:
        return re.compile(body, flags)
    except re.error as error:
        raise BadGlob(f"{error} in {pattern!r}") from error


def _alternatives(pattern: str, at: int, *, nested: bool) -> tuple[str, int]:
    """From `at` to the closing brace, or to the end of the pattern; the expression and where it stopped."""
    branches, current = [], ""
    while at < len(pattern):
        letter = pattern[at]
        if letter == "}":
            break
        if letter == "," and nested:
            branches.append(current)
            current, at = "", at + 1
            continue
        piece, at = _piece(pattern, at)
        current += piece
    return "|".join([*branches, current]), at


def _piece(pattern: str, at: int) -> tuple[str, int]:
    match pattern[at]:
        case "*":
            return _stars(pattern, at)
        case "?":
            return "[^/]", at + 1
        case "[":
            return _class(pattern, at)
        case "{":
            body, end = _alternatives(pattern, at + 1, nested=True)
            if end >= len(pattern):
                raise BadGlob(f"unclosed alternation in {pattern!r} at character {at + 1}")
            return f"(?:{body})", end + 1
        case "\\":
            if at + 1 >= len(pattern):
                raise BadGlob(f"dangling backslash at the end of {pattern!r}")
            return re.escape(pattern[at + 1]), at + 2
        case "/" if pattern.startswith("/**", at) and pattern[at + 3 : at + 4] in ("", "/"):
            # `a/**` is what lies below; `a/**/b` also a/b.
            return ("/.*", at + 3) if at + 3 == len(pattern) else (_ANY_MIDDLE, at + 4)
        case letter:
            return re.escape(letter), at + 1


def _stars(pattern: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(pattern) and pattern[end] == "*":
        end += 1
    if end - at == 2 and at == 0 and pattern[end : end + 1] in ("", "/"):
        return (".*", end) if end == len(pattern) else (_ANY_START, end + 1)
    return "[^/]*", end


def _class(pattern: str, at: int) -> tuple[str, int]:
    start = at + 1
    negated = pattern[start : start + 1] in ("!", "^")
    start += negated
    # A bracket right at the start is a member.
    end = pattern.find("]", start + 1)
    if end < 0:
        raise BadGlob(f"unclosed character class in {pattern!r} at character {at + 1}")
    members = re.sub(r"([\\\[\]^&~|])", r"\\\1", pattern[start:end])
    return f"(?!/)[{'^' if negated else ''}{members}]", end + 1
