"""A tool call of a responses stream while it is received (WIRE-90).

Its text comes in pieces, may come whole before the end, and comes whole with the item; the last word wins.
A grammar tool sends plain text; what is told of it are pieces of the JSON object `{"<property>": text}` it stands for.
"""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from camshaft.actors.api import EMPTY, FrozenDict, ToolCall, final_arguments, joined_halves
from camshaft.extensions_std.providers.reported import text_in


@attrs.define(eq=False, kw_only=True)
class Call:
    """See the header."""

    id: str
    name: str
    is_real: bool
    """Whether the server gave the id."""
    held_by: str | None = None
    """Of a grammar tool: the property that holds its text."""
    _pieces: list[str] = attrs.field(factory=list, init=False)
    _replaced: str | None = attrs.field(default=None, init=False)
    """The full text, where it does not continue the pieces."""

    @property
    def shown(self) -> FrozenDict:
        """The arguments before any text."""
        return EMPTY if self.held_by is None else FrozenDict({self.held_by: ""})

    def text_of(self, holder: Mapping[str, Any]) -> str:
        """The full text as an item or event gives it; empty if it gives none."""
        return text_in(holder, "arguments" if self.held_by is None else "input")

    def take(self, piece: str) -> str:
        """Adds a piece; what it is of the arguments' text."""
        told = piece
        if self.held_by is not None and piece:
            opening = "" if self._pieces else f'{{{json.dumps(self.held_by, ensure_ascii=False)}:"'
            told = opening + json.dumps(piece, ensure_ascii=False)[1:-1]
        if piece:
            self._pieces.append(piece)
        return told

    def tail(self, event: Mapping[str, Any]) -> str:
        """What of an event's full text was missing, if it continues the pieces; else nothing, and the text replaces them."""
        full, streamed = self.text_of(event), self._streamed
        if not full.startswith(streamed):
            self._replaced = full or None
            return ""
        return self.take(full[len(streamed) :])

    def ended(self, item: Mapping[str, Any]) -> tuple[str, ToolCall]:
        """What closes the arguments' text, if that is as it streamed, and the call with its whole item."""
        streamed = self._streamed
        text = self.text_of(item) or (streamed if self._replaced is None else self._replaced)
        name = text_in(item, "name") or self.name
        if self.held_by is None:
            arguments, error = final_arguments(text)
            return "", ToolCall(id=self.id, name=name, arguments=arguments, arguments_error=error)
        closing = '"}' if self._pieces and text == streamed else ""
        return closing, ToolCall(id=self.id, name=name, arguments=FrozenDict({self.held_by: text}))

    @property
    def _streamed(self) -> str:
        return joined_halves("".join(self._pieces))
