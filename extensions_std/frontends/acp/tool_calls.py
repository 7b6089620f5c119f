"""How a tool call is shown: a title, what kind of work it is, which files it is about, and what it changes.

Only the built-in tools are known by name; any other is `other`, under its label, with its arguments as raw input.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.api import Block, ImageBlock, TextBlock
from camshaft.actors.host import Seat
from camshaft.extensions_std.tools import ToolFailure, resolve_path

KINDS: Final[Mapping[str, str]] = {
    "read": "read",
    "edit": "edit",
    "write": "edit",
    "bash": "execute",
    "powershell": "execute",
    "grep": "search",
    "find": "search",
    "ls": "search",
}
FENCED: Final = frozenset({"read", "execute", "search"})
"""Kinds whose output is no prose: clients show texts as Markdown."""
TITLE_CHARACTERS_MAX: Final = 200


@attrs.frozen
class Tools:
    """What is known of the tools of a session."""

    _seat: Seat

    def label_of(self, name: str) -> str:
        """What people call a tool; its name if it is not known."""
        tool = self._seat.tools.get(name)
        return name if tool is None else tool.definition.label or name

    def path_of(self, path: str) -> str | None:
        """The absolute path that a tool means; None for a text no tool takes."""
        try:
            return resolve_path(path, self._seat.cwd, self._seat.world.environment)
        except ToolFailure:
            return None


@attrs.frozen(kw_only=True)
class ShownCall:
    """A call, as the client is told of it."""

    id: str
    """Unique in the session, which ids of providers need not be."""
    title: str
    kind: str
    locations: tuple[dict[str, Any], ...]
    diffs: tuple[dict[str, Any], ...]
    """What it changes, if that is known before it runs."""
    raw_input: Mapping[str, Any]
    parent_id: str | None = None
    """The call that makes this one, as the client knows it."""

    def fields(self) -> dict[str, Any]:
        """What a client is told when the call begins."""
        fields: dict[str, Any] = {"toolCallId": self.id, "title": self.title, "kind": self.kind, "rawInput": self.raw_input}
        if self.locations:
            fields["locations"] = self.locations
        if self.diffs:
            fields["content"] = self.diffs
        return fields if self.parent_id is None else {**fields, "_meta": {"camshaft/parentToolCallId": self.parent_id}}

    def content(self, blocks: Sequence[Block], *, is_error: bool = False) -> list[dict[str, Any]]:
        """What is shown of a result, whole or partial; of a change that was made, the change."""
        if self.diffs and not is_error:
            return list(self.diffs)
        is_fenced = self.kind in FENCED and not is_error
        return [*self.diffs, *[_content(block, is_fenced=is_fenced) for block in blocks if isinstance(block, TextBlock | ImageBlock)]]


def shown_call(id: str, name: str, arguments: Mapping[str, Any], tools: Tools) -> ShownCall:
    """A call of the tool `name`; of arguments that are not what the tool takes, nothing is shown but themselves."""
    path = arguments.get("path")
    path = path if isinstance(path, str) and path and name in KINDS else None
    full = None if path is None else tools.path_of(path)
    return ShownCall(
        id=id,
        title=_title(name, arguments, path, tools.label_of(name)),
        kind=KINDS.get(name, "other"),
        locations=() if full is None else (_location(full, arguments.get("offset")),),
        diffs=() if full is None else tuple(_diffs(name, arguments, full)),
        raw_input=arguments,
    )


def _title(name: str, arguments: Mapping[str, Any], path: str | None, label: str) -> str:
    command, pattern = arguments.get("command"), arguments.get("pattern")
    if KINDS.get(name) == "execute" and isinstance(command, str) and command.strip():
        return _code(command)
    words = [label]
    if KINDS.get(name) == "search" and isinstance(pattern, str):
        words.append(_code(pattern))
    if path is not None:
        words.append(path)
    return _cut(" ".join(words))


def _code(text: str) -> str:
    """The first line, as Markdown shows code."""
    first, *more = text.strip().splitlines() or [""]
    shown = _cut(first + (" …" if more else ""))
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def _cut(text: str) -> str:
    return text if len(text) <= TITLE_CHARACTERS_MAX else text[: TITLE_CHARACTERS_MAX - 1] + "…"


def _location(path: str, line: object) -> dict[str, Any]:
    is_line = isinstance(line, int) and not isinstance(line, bool) and line > 0
    return {"path": path, "line": line} if is_line else {"path": path}


def _diffs(name: str, arguments: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    if name == "write" and isinstance(arguments.get("content"), str):
        return [{"type": "diff", "path": path, "newText": arguments["content"]}]
    edits = arguments.get("edits")
    if name != "edit" or not isinstance(edits, Sequence) or isinstance(edits, str):
        return []
    pairs = [(each.get("oldText"), each.get("newText")) for each in edits if isinstance(each, Mapping)]
    texts = [(old, new) for old, new in pairs if isinstance(old, str) and isinstance(new, str)]
    return [{"type": "diff", "path": path, "oldText": old, "newText": new} for old, new in texts]


def _content(block: TextBlock | ImageBlock, *, is_fenced: bool) -> dict[str, Any]:
    shown = content_block(block)
    if is_fenced and isinstance(block, TextBlock):
        shown["text"] = _fenced(block.text)
    return {"type": "content", "content": shown}


def content_block(block: TextBlock | ImageBlock) -> dict[str, Any]:
    """A block of the protocol."""
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    return {"type": "image", "data": block.data, "mimeType": block.mime_type}


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"
