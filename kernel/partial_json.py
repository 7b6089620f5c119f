"""Text of a tool call's arguments: a tolerant preview while it streams, a strict parse at its end.

Theory of operation. The preview (STR-25) is a loop over the text with an explicit stack of
open containers, never a recursion. At each moment the innermost container wants either a key
or a value; what reads as neither is skipped, a word at a time, so that `None` never shows the
`n` of `null`. A word ends at a blank, a bracket, a comma, a colon or a quote; either closing
bracket closes the innermost container. A key is kept until its value is known and dropped
with a value that is not JSON; a container where a key belongs is read and dropped. Containers
freeze as they close, so the result costs no second walk. Every character is passed once, and
nothing raises.

A beginning of a literal shows its value while it is the last thing of the text. If a piece of
the stream ended there and the word ended too (`tru`, then `,`), what was shown stays until the
next value of that container begins or the container closes, so that a preview does not flicker.

The final parse (STR-26) never uses that preview: truncated text must not run as a call. It is
strict, but for two repairs inside strings that models need often.
"""

import json
import math
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json, freeze

DEPTH_MAX: Final = 128
"""Containers inside each other; deeper ones are not shown and not accepted, because everything
that walks arguments afterwards (freezing, coercion, validation) recurses."""

_DROPPED: Final = object()
"""What reads as a value but is none JSON can hold; nothing to show."""

_PLAIN: Final = re.compile(r'[^"\\]*')
_ESCAPE: Final = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_UNFINISHED: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_ESCAPED: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_WORD: Final = re.compile(r'[^ \t\n\r{}\[\],:"]+')
_NUMBER: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?(?:([eE][+-]?[0-9]+)|([eE][+-]?))?")
_LITERALS: Final = (("true", True), ("false", False), ("null", None))
_OPENERS: Final = {"{": dict, "[": list}
_REPAIR: Final = re.compile(r'"|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\|[\x00-\x1f]')
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_KINDS: Final = ((bool, "a boolean"), (type(None), "null"), (str, "text"), ((int, float), "a number"), ((list, tuple), "an array"))


def preview(text: str, pieces: Sequence[str] = ()) -> FrozenDict:
    """What `text` shows of an object so far; `{}` until one has begun and for any other root. O(len(text)).

    `pieces` is the text as it arrived, if it came in several.
    """
    start = _root_start(text)
    if start is None:
        return EMPTY
    return _Reader(text=text, pieces=pieces, at=start + 1).read()


def final_arguments(text: str) -> tuple[FrozenDict, str | None]:
    """The arguments of the complete `text`, and why it is no JSON object, or None (STR-26). Blank text is `{}`."""
    if not text.strip():
        return EMPTY, None
    try:
        value = _strict(text)
    except ValueError as error:
        try:
            value = _strict(repaired(text))
        except ValueError:
            return EMPTY, _complaint(str(error), text)
    if not isinstance(value, FrozenDict):
        kind = next(name for types, name in _KINDS if isinstance(value, types))
        return EMPTY, _complaint(f"expected a JSON object, got {kind}", text)
    return value, None


def joined_halves(text: str) -> str:
    """`text` with neighbouring halves of a surrogate pair made one character; lone halves stay (STR-28)."""
    if text.isascii() or not _PAIR.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def repaired(text: str) -> str:
    """JSON `text` with, inside strings, control characters escaped and backslashes before an invalid escape doubled (STR-26)."""
    inside = False

    def repair(found: re.Match[str]) -> str:
        nonlocal inside
        token = found[0]
        if token == '"':
            inside = not inside
        elif inside and token == "\\":
            return "\\\\"
        elif inside and token < " ":
            return f"\\u{ord(token):04x}"
        return token

    return _REPAIR.sub(repair, text)


def _complaint(why: str, text: str) -> str:
    return f"{why}\n\nReceived arguments:\n{text}"


def _strict(text: str) -> Json:
    """The value, frozen. Raises ValueError, also for numbers beyond the finite range and for too deep nesting."""
    if _is_too_deep(text):
        raise ValueError(f"nested deeper than {DEPTH_MAX} levels")
    return freeze(json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float))


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _finite_float(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise ValueError("a number is beyond the finite range")
    return value


def _is_too_deep(text: str) -> bool:
    if text.count("{") + text.count("[") <= DEPTH_MAX:
        return False
    depth = 0
    for token in _BRACKETS.finditer(text):
        first = token[0][0]
        depth += (first in "[{") - (first in "]}")
        if depth > DEPTH_MAX:
            return True
    return False


def _root_start(text: str) -> int | None:
    """Where the root object opens, or None. Any other value that comes first is the root."""
    at = 0
    while at < len(text):
        if text[at] == "{":
            return at
        word = _WORD.match(text, at)
        if text[at] in '["' or (word is not None and _scalar(word[0], is_last=False) is not _DROPPED):
            return None
        at = at + 1 if word is None else word.end()
    return None


def _scalar(word: str, *, is_last: bool) -> Any:
    """The number or literal that `word` is, or begins if nothing follows it yet; `_DROPPED` if it is none."""
    number = _NUMBER.fullmatch(word)
    if number is not None and (is_last or number[4] is None):
        return _number(number)
    for literal, value in _LITERALS:
        if word == literal or (is_last and literal.startswith(word)):
            return value
    return _DROPPED


def _number(found: re.Match[str]) -> Any:
    whole, fraction, exponent, _ = found.groups()
    if fraction is None and exponent is None:
        try:
            return int(whole)
        except ValueError:  # Python refuses to read integers of thousands of digits.
            return _DROPPED
    value = float(whole + (fraction or "") + (exponent or ""))
    return value if math.isfinite(value) else _DROPPED


@shapes.define(eq=False, kw_only=True)
class _Reader:
    """One preview under way: position, open containers, and the key each open object waits with."""

    text: str
    pieces: Sequence[str]
    at: int
    stack: list[Any] = attrs.field(factory=lambda: [{}])
    keys: list[str | None] = attrs.field(factory=lambda: [None])
    left: tuple[str | None, Any] | None = None
    """Key and value that a word showed before it turned out to be none; of the innermost container."""
    ends: frozenset[int] | None = None
    """Where pieces end; made when first asked for."""

    def read(self) -> FrozenDict:
        """The root object, as far as the text goes."""
        while self.stack and self.at < len(self.text):
            self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]  # matches the empty text everywhere
            if self.at < len(self.text) and not self._step():
                break
        if self.left is not None:
            self.keys[-1], value = self.left
            self._put(value)
        while len(self.stack) > 1:
            self._close()
        return FrozenDict(self.stack[0])

    def _step(self) -> bool:
        """Takes one token; False when the root has closed or nesting is too deep."""
        character = self.text[self.at]
        if character in "}]":
            self.at += 1
            self.left = None
            if len(self.stack) == 1:
                return False
            self._close()
            return True
        if character in _OPENERS:
            return self._open(_OPENERS[character]())
        if isinstance(self.stack[-1], dict) and self.keys[-1] is None:
            self._key(character)
        else:
            self._value(character)
        return True

    def _open(self, container: Any) -> bool:
        if len(self.stack) == DEPTH_MAX:
            return False
        self.left = None
        self.stack.append(container)
        self.keys.append(None)
        self.at += 1
        return True

    def _key(self, character: str) -> None:
        if character != '"':
            self.at += 1
            return
        key, complete = self._string()
        if complete:
            self.keys[-1] = key

    def _value(self, character: str) -> None:
        if character in ",:":
            self.keys[-1] = None if character == "," else self.keys[-1]
            self.at += 1
        elif character == '"':
            self.left = None
            self._put(self._string()[0])
        else:
            self._word()

    def _word(self) -> None:
        word = _WORD.match(self.text, self.at)
        assert word is not None  # every other character was taken before
        self.left, self.at, key = None, word.end(), self.keys[-1]
        value = _scalar(word[0], is_last=self.at == len(self.text))
        if value is _DROPPED and (shown := _scalar(word[0], is_last=True)) is not _DROPPED and self._ends_piece():
            self.left = (key, shown)
        self._put(value)

    def _ends_piece(self) -> bool:
        if self.ends is None:
            self.ends = frozenset(accumulate(map(len, self.pieces)))
        return self.at in self.ends

    def _put(self, value: Any) -> None:
        container, key = self.stack[-1], self.keys[-1]
        self.keys[-1] = None
        if value is _DROPPED:
            return
        if isinstance(container, list):
            container.append(value)
        elif key is not None:
            container[key] = value

    def _close(self) -> None:
        """Freezes the innermost container into the one around it."""
        done = self.stack.pop()
        self.keys.pop()
        self._put(FrozenDict(done) if isinstance(done, dict) else tuple(done))

    def _string(self) -> tuple[str, bool]:
        """The text of the string that opens here, and whether it is closed."""
        text, at, pieces = self.text, self.at + 1, []
        while True:
            plain = _PLAIN.match(text, at)
            assert plain is not None  # matches the empty text everywhere
            pieces.append(plain[0])
            at = plain.end()
            if at == len(text) or text[at] == '"':
                self.at = min(at + 1, len(text))
                return joined_halves("".join(pieces)), at < len(text)
            escape = _ESCAPE.match(text, at)
            if escape is not None:
                pieces.append(_ESCAPED[escape[1]] if escape[1] else chr(int(escape[2], 16)))
                at = escape.end()
            elif _UNFINISHED.match(text, at):
                self.at = len(text)
                return joined_halves("".join(pieces)), False
            else:
                pieces.append("\\")
                at += 1
