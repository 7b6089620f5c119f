"""File name patterns as fd reads them, as regular expressions (TOOL-91).

`*` and `?` stop at `/`; `**` as a whole component stands for any number of components;
`[a-z]`, `[!a-z]` and `[^a-z]`; `{a,b}`, not nested; a backslash takes the next character as
it is, but not between brackets. Without an upper-case letter in the pattern, letters of ASCII
match in either case. All of it works on bytes: `?` and a class stand for one byte of a name.
"""

import re
from typing import Final

import attrs

_ANY_START: Final = b"(?:/?|.*/)"
_ANY_MIDDLE: Final = b"(?:/|/.*/)"
_ANY_END: Final = b"/.*"


class BadGlob(Exception):
    """The pattern is malformed; the message says where."""


def glob_expression(pattern: str) -> re.Pattern[bytes]:
    """The expression that fully matches the bytes of what the pattern means. Raises BadGlob."""
    flags = re.DOTALL if any(letter.isupper() for letter in pattern) else re.DOTALL | re.IGNORECASE
    try:
        parser = _Parser(pattern=pattern)
        while parser.at < len(pattern):
            parser.take()
        return re.compile(parser.expression(), flags)
    except re.error as error:
        raise BadGlob(f"{error} in {pattern!r}") from error


@attrs.define(kw_only=True)
class _Parser:
    """The pieces read so far: outside braces, and the branches of the brace that is open."""

    pattern: str
    at: int = 0
    outside: list[bytes] = attrs.field(factory=list)
    branches: list[list[bytes]] | None = None

    @property
    def pieces(self) -> list[bytes]:
        """Where the next piece goes."""
        return self.branches[-1] if self.branches else self.outside

    def expression(self) -> bytes:
        """Of the whole pattern."""
        if self.branches is not None:
            raise BadGlob(f"unclosed alternation in {self.pattern!r}")
        return b".*" if self.outside == [_ANY_START] else b"".join(self.outside)

    def take(self) -> None:
        """Reads the next piece."""
        letter = self.pattern[self.at]
        self.at += 1
        match letter:
            case "*":
                self._stars()
            case "?":
                self.pieces.append(b"[^/]")
            case "[":
                self._class()
            case "{" if self.branches is not None:
                raise BadGlob(f"nested alternation in {self.pattern!r} at character {self.at}")
            case "{":
                self.branches = [[]]
            case "}":
                self._close_brace()
            case "," if self.branches is not None:
                self.branches.append([])
            case "\\":
                self.pieces.append(_literal(self._next("dangling backslash")))
            case _:
                self.pieces.append(_literal(letter))

    def _next(self, fault: str) -> str:
        if self.at >= len(self.pattern):
            raise BadGlob(f"{fault} in {self.pattern!r}")
        self.at += 1
        return self.pattern[self.at - 1]

    def _close_brace(self) -> None:
        """Empty branches do not count; a brace that was not opened means nothing."""
        written = [b"".join(branch) for branch in self.branches or () if branch]
        self.branches = None
        if written:
            self.pieces.append(b"(?:" + b"|".join(written) + b")")

    def _stars(self) -> None:
        """After the first star."""
        before = self.pattern[self.at - 2 : self.at - 1]
        if self.pattern[self.at : self.at + 1] != "*":
            self.pieces.append(b"[^/]*")
            return
        self.at += 1
        after = self.pattern[self.at : self.at + 1]
        branch_ends = self.branches is not None and after in ("", ",", "}")
        if not self.pieces and after in ("", "/"):
            self.pieces.append(_ANY_START)
        elif self.pieces and before == "/" and (after in ("", "/") or branch_ends):
            # The slash before is part of it. Several in a row are one.
            last = self.pieces.pop()
            self.pieces.append(last if last in (_ANY_START, _ANY_END) else _ANY_MIDDLE if after == "/" else _ANY_END)
        else:
            self.pieces.append(b"[^/]*")
            return
        self.at += after == "/"

    def _class(self) -> None:
        """After the bracket. A bracket right at the start is a member, as is a dash at either end."""
        start = self.at
        negated = self.pattern[self.at : self.at + 1] in ("!", "^")
        self.at += negated
        members: list[list[str]] = []
        open_range = False
        while True:
            letter = self._next(f"unclosed character class from character {start}")
            if letter == "]" and members:
                break
            if letter == "-" and members and not open_range:
                open_range = True
                continue
            if open_range:
                members[-1][1] = letter
            else:
                members.append([letter, letter])
            open_range = False
        if open_range:
            members.append(["-", "-"])
        body = b"".join([_range(first, last) for first, last in members])
        self.pieces.append(b"[" + b"^" * negated + body + b"]")


def _range(first: str, last: str) -> bytes:
    return _literal(first) if first == last else _literal(first) + b"-" + _literal(last)


def _literal(letter: str) -> bytes:
    """Every byte of its UTF-8, spelt so that it means itself, in a class too."""
    return b"".join([b"\\x%02x" % byte for byte in letter.encode("utf-8", "surrogateescape")])
