"""Entries of a resource list in settings: what is included, what is left out (SET-13, EXT-9).

A plain entry is a path, one with `*`, `?` or `[` a pattern of paths; both include. `!pattern` leaves out what matches,
`+path` takes one exact path back in, `-path` leaves one exact path out whatever else is said. Paths here are absolute and
written with `/`; who reads files makes them so.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from camshaft.kernel import shapes

_WILD: Final = re.compile(r"[*?\[]")
_BUILTIN: Final = "builtin:"
_PACKAGE: Final = "package:"


@shapes.frozen(kw_only=True)
class PathEntries:
    """The entries of one list, sorted by what they do; their paths are absolute."""

    includes: tuple[str, ...] = ()
    """Paths and patterns, in order."""
    excluded: tuple[str, ...] = ()
    """Patterns."""
    forced_in: tuple[str, ...] = ()
    forced_out: tuple[str, ...] = ()

    def allows(self, *names: str) -> bool:
        """Whether something that goes by these paths (a folder, its main file) counts: `-` before `+` before `!`."""
        if any([name in self.forced_out for name in names]):
            return False
        if any([name in self.forced_in for name in names]):
            return True
        return not any([matches(pattern, name) for pattern in self.excluded for name in names])


def path_entries(entries: Iterable[str], absolute: Callable[[str], str]) -> PathEntries:
    """The entries; `absolute` makes a path of the list absolute. Names of built-in and packaged extensions stay as they are."""
    found: dict[str, list[str]] = {"": [], "!": [], "+": [], "-": []}
    for entry in entries:
        mark, path = (entry[0], entry[1:]) if entry[:1] in ("!", "+", "-") else ("", entry)
        if path.strip():
            is_name = path.startswith((_BUILTIN, _PACKAGE))
            found[mark].append(path if is_name else absolute(path))
    return PathEntries(includes=tuple(found[""]), excluded=tuple(found["!"]), forced_in=tuple(found["+"]), forced_out=tuple(found["-"]))


def is_pattern(path: str) -> bool:
    """Whether a path stands for many."""
    return _WILD.search(path) is not None


def matches(pattern: str, path: str) -> bool:
    """Whether a path is what the pattern says, or lies in a folder that is."""
    return _expression(pattern).fullmatch(path) is not None


def _expression(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stop at `/`, `**` does not; `[abc]` and `[!abc]` as in a shell."""
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        piece, at = _piece(pattern, at)
        pieces.append(piece)
    return re.compile("".join(pieces) + "(?:/.*)?", re.DOTALL)


def _piece(pattern: str, at: int) -> tuple[str, int]:
    """The expression of what stands at `at`, and where the next begins."""
    for written, expression in (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]")):
        if pattern.startswith(written, at):
            return expression, at + len(written)
    end = pattern.find("]", at + 2) if pattern[at] == "[" else -1
    if end > 0:
        inner = pattern[at + 1 : end]
        negated, members = ("^", inner[1:]) if inner[:1] in ("!", "^") else ("", inner)
        return f"[{negated}{_members(members)}]", end + 1
    return re.escape(pattern[at]), at + 1


def _members(written: str) -> str:
    """The inside of a class; a range that goes backwards is the plain characters."""
    ranges = re.findall(r"(.)-(.)", written)
    is_sound = all([first <= last for first, last in ranges])
    return re.sub(r"([\\\]\[^&~|])", r"\\\1", written) if is_sound else re.escape(written)
