"""Prompt templates: `/name arguments` becomes a longer text (RES-11 to RES-13).

One pass, and what it puts in is never looked at again: neither an argument nor a template can smuggle in another expansion.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from camshaft.kernel import shapes
from camshaft.kernel.messages import BLANKS
from camshaft.kernel.tools import SourceInfo

_BLANK: Final = f"[{BLANKS}]"
_CALL: Final = re.compile(f"/([^{BLANKS}]+)(?:{_BLANK}+(.*))?", re.DOTALL)
_PLACEHOLDER: Final = re.compile(
    r"\$\{(?P<with_default>[0-9]+|@|ARGUMENTS):-(?P<default>[^}]*)\}"
    r"|\$\{@:(?P<start>[0-9]+)(?::(?P<length>[0-9]+))?\}"
    r"|\$(?P<plain>[0-9]+|@|ARGUMENTS)"
)
_DIGITS_MAX: Final = 9
"""A number of more digits names an argument nobody can give."""


@shapes.frozen(kw_only=True)
class PromptTemplate:
    """A text to be filled in, and how it is called."""

    name: str
    """What follows the slash."""
    content: str
    """The text with its placeholders."""
    description: str = ""
    argument_hint: str | None = None
    """What to type behind the name, for people."""
    file_path: str = ""
    """Absolute; empty for one that a host made."""
    source_info: SourceInfo | None = None


def expand_template(text: str, templates: Iterable[PromptTemplate]) -> str:
    """The template that `text` calls, filled in; `text` itself if it calls none. The first of a name counts."""
    call = _CALL.fullmatch(text)
    if call is None:
        return text
    found = next((each for each in templates if each.name == call[1]), None)
    return text if found is None else substitute(found.content, template_arguments(call[2] or ""))


def template_arguments(text: str) -> list[str]:
    """The arguments in `text`, split at blanks; quotes at the start of one keep blanks together (RES-12)."""
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at] in BLANKS:
            at += 1
            continue
        quoted, at = _quoted(text, at) if text[at] in "\"'" else ("", at)
        end = at
        while end < len(text) and text[end] not in BLANKS:
            end += 1
        found.append(quoted + text[at:end])
        at = end
    return found


def _quoted(text: str, start: int) -> tuple[str, int]:
    """What stands between the quote at `start` and its end, and where that ends; nothing taken if it never does."""
    pieces: list[str] = []
    quote, at = text[start], start + 1
    while at < len(text):
        if text[at] == quote:
            return "".join(pieces), at + 1
        if text.startswith(f"\\{quote}", at):
            at += 1
        pieces.append(text[at])
        at += 1
    return "", start


def substitute(content: str, arguments: Sequence[str]) -> str:
    """`content` with its placeholders filled in, in one pass (RES-13)."""
    return _PLACEHOLDER.sub(lambda found: _value(found, arguments), content)


def _value(found: re.Match[str], arguments: Sequence[str]) -> str:
    if found["start"] is not None:
        start = max(_number(found["start"]), 1) - 1
        length = None if found["length"] is None else _number(found["length"])
        return " ".join(arguments[start:] if length is None else arguments[start : start + length])
    name = found["plain"] or found["with_default"]
    value = " ".join(arguments) if not name.isdigit() else _at(arguments, _number(name))
    return value or found["default"] or ""


def _at(arguments: Sequence[str], position: int) -> str:
    return arguments[position - 1] if 0 < position <= len(arguments) else ""


def _number(digits: str) -> int:
    return int(digits) if len(digits) <= _DIGITS_MAX else 10**_DIGITS_MAX
