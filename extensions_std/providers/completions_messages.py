"""Prepared messages as chat-completions messages, encoded once each.

Theory of operation. A `Transcript` follows the message list of one session. While the list only
grows, a request costs its new messages: the JSON of all settled wire messages is kept in one buffer,
and a request copies that once. Two things can undo that, and then everything is made again from the
first message on: the list is not a continuation of the last one (a compaction, another branch), or
what the old bytes rest on has changed (model, flags, grammar tools, a replay of the prompt that
folds what stood in place). Lists are compared element by element, and the comparison of a message
with itself is one of identity, so finding out that nothing changed is cheap.

Wire messages that could still change stay out of the kept list: results made up for open calls,
held system messages, and images of tool results, which follow the last result of a run of them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from camshaft.actors.api import AssistantMessage, Model, ModelMessage, SystemMessage, ToolCall, ToolDeclaration, ToolResultMessage
from camshaft.extensions_std.providers.budget import InputEstimate
from camshaft.extensions_std.providers.compat import CompletionsFlags
from camshaft.extensions_std.providers.completions_render import Renderer, Wire, grammars_of, has_text, text_part, wire_tools, with_mark
from camshaft.extensions_std.providers.preparation import Preparation, PromptReplay, completions_call_id, encoded


@attrs.define(eq=False)
class Transcript:
    """The wire messages of one session, kept from request to request; see the header."""

    model: Model
    flags: CompletionsFlags
    _seen: list[ModelMessage] = attrs.field(factory=list, init=False)
    _settled: bytearray = attrs.field(factory=bytearray, init=False)
    """Settled wire messages as JSON, with commas between them, without the leading system message."""
    _marked: tuple[int, int, Wire] | None = attrs.field(default=None, init=False)
    """Start, end and value of the last settled message that has text, for the cache mark (WIRE-69)."""
    _preparation: Preparation = attrs.field(init=False)
    _renderer: Renderer = attrs.field(init=False)
    _prompt: PromptReplay = attrs.field(init=False)
    """All system messages so far, replayed."""
    _leading: PromptReplay = attrs.field(init=False)
    """Those that the leading system message tells."""
    _declared: set[str] = attrs.field(init=False)
    """Names of tools declared so far, also since removed (WIRE-79)."""
    _has_others: bool = attrs.field(default=False, init=False)
    """Whether a message other than system ones was seen."""
    _has_tools: bool = attrs.field(default=False, init=False)
    """Whether a call or result was seen."""
    _made: dict[str, tuple[object, bytes]] = attrs.field(factory=dict, init=False)
    """The last JSON of the leading message and of the tools, with what it was made of."""
    estimate: InputEstimate = attrs.field(factory=InputEstimate, init=False)

    def __attrs_post_init__(self) -> None:
        self._restart([])

    def follow(self, messages: Sequence[ModelMessage]) -> None:
        """Takes the message list of a request. O(new messages) plus one comparison of the old ones."""
        now = list(messages)
        known = len(self._seen)
        if len(now) < known or now[:known] != self._seen:
            self._restart(now)
            return
        for index in range(known, len(now)):
            if not self._add(now[index]):
                self._restart(now)
                return
        self._seen = now

    def wire_messages(self, cache_control: Wire | None) -> list[bytes | bytearray]:
        """The `messages` list as JSON, in pieces to be joined at once."""
        renderer = self._renderer.copied()
        rest: list[Wire] = []
        for message in self._preparation.tail():
            rest += renderer.add(message)
        rest += renderer.tail()
        settled: list[bytes | bytearray] = [self._settled] if self._settled else []
        if cache_control is not None:
            settled = self._mark(rest, cache_control)
        pieces: list[bytes | bytearray] = [b"["]
        text = self._leading.text
        if text:
            pieces += [self._remade("leading", (text, cache_control), self._leading_json), b"," if settled or rest else b""]
        pieces += settled
        for index, wire in enumerate(rest):
            pieces += [b"," if settled or index else b"", encoded(wire)]
        return [*pieces, b"]"]

    def _leading_json(self, key: tuple[str, Wire | None]) -> bytes:
        text, cache_control = key
        content: Any = [{**text_part(text), "cache_control": cache_control}] if cache_control else text
        return encoded({"role": self._renderer.system_role, "content": content})

    def tools_json(self, cache_control: Wire | None) -> bytes:
        """The top-level `tools` list, as JSON. Raises ConstraintRefused."""
        return self._remade("tools", (self.tools, cache_control), lambda key: wire_tools(key[0], self.flags, key[1]))

    def _remade(self, name: str, key: Any, make: Callable[[Any], bytes]) -> bytes:
        """What was made last, if it was made of the same."""
        known = self._made.get(name)
        if known is None or known[0] != key:
            known = self._made[name] = (key, make(key))
        return known[1]

    @property
    def tools(self) -> tuple[ToolDeclaration, ...]:
        """The tools of the top-level list: the current ones, without those sent in place (WIRE-79)."""
        in_place = self.flags.supports_mid_convo_system_messages and self.flags.supports_mid_convo_tool_additions
        return tuple((self._leading if in_place else self._prompt).tools.values())

    @property
    def has_tool_history(self) -> bool:
        """Whether the history has calls or results."""
        return self._has_tools

    def grammars(self) -> dict[str, str]:
        """Current tools that are called with plain text, to the property that holds it."""
        return grammars_of(self._prompt.tools.values(), self.flags)

    def _restart(self, messages: list[ModelMessage]) -> None:
        """Makes everything again: the leading message tells what cannot stay in place."""
        folded = self._fold_end(messages)
        self._settled, self._marked, self._seen = bytearray(), None, messages
        self._prompt, self._leading, self._declared = PromptReplay(), PromptReplay(), set()
        self._has_others = self._has_tools = False
        self.estimate = InputEstimate()
        keeps = self.flags.supports_mid_convo_system_messages
        self._preparation = Preparation(self.model, completions_call_id(self.model.provider), keeps)
        everything = PromptReplay()
        for message in messages:
            if isinstance(message, SystemMessage):
                everything.add(message)
        self._renderer = Renderer(self.model, self.flags, grammars_of(everything.tools.values(), self.flags))
        for index, message in enumerate(messages):
            self._take(message, is_leading=index < folded)

    def _fold_end(self, messages: list[ModelMessage]) -> int:
        """How many messages from the start have their system messages told by the leading one (WIRE-11, WIRE-79)."""
        if not self.flags.supports_mid_convo_system_messages:
            return len(messages)
        end, declared, at_start = 0, set[str](), True
        in_place_tools = self.flags.supports_mid_convo_tool_additions
        for index, message in enumerate(messages):
            if not isinstance(message, SystemMessage):
                at_start = False
                continue
            added = [tool.name for tool in message.tools_added or ()]
            changes_tools = in_place_tools and (message.tools_removed or not declared.isdisjoint(added))
            if at_start or message.replace or changes_tools:
                end = index + 1
            declared.update(added)
        return end

    def _add(self, message: ModelMessage) -> bool:
        """Continues with one message; False if what was made so far no longer fits."""
        if not isinstance(message, SystemMessage):
            self._take(message, is_leading=False)
            return True
        keeps = self.flags.supports_mid_convo_system_messages
        added = [tool.name for tool in message.tools_added or ()]
        in_place_tools = keeps and self.flags.supports_mid_convo_tool_additions
        if message.replace or (in_place_tools and (message.tools_removed or not self._declared.isdisjoint(added))):
            return False
        self._take(message, is_leading=not keeps or not self._has_others)
        return self.grammars() == self._renderer.grammars

    def _take(self, message: ModelMessage, *, is_leading: bool) -> None:
        self.estimate.add(message)
        if isinstance(message, SystemMessage):
            self._prompt.add(message)
            self._declared.update([tool.name for tool in message.tools_added or ()])
            if is_leading:
                self._leading.add(message)
                return
        else:
            self._has_others = True
            self._has_tools = self._has_tools or isinstance(message, ToolResultMessage) or _has_calls(message)
        for prepared in self._preparation.add(message):
            for wire in self._renderer.add(prepared):
                self._settle(wire)

    def _settle(self, wire: Wire) -> None:
        made = encoded(wire)
        if self._settled:
            self._settled += b","
        start = len(self._settled)
        self._settled += made
        if self.flags.cache_control_format and has_text(wire):
            self._marked = (start, start + len(made), wire)

    def _mark(self, rest: list[Wire], cache_control: Wire) -> list[bytes | bytearray]:
        """The settled messages; the last text of the last message that has one is marked, here or in `rest`."""
        settled: list[bytes | bytearray] = [self._settled] if self._settled else []
        for index in reversed(range(len(rest))):
            if has_text(rest[index]):
                rest[index] = with_mark(rest[index], cache_control)
                return settled
        if self._marked is None:
            return settled
        start, end, wire = self._marked
        return [bytes(self._settled[:start]), encoded(with_mark(wire, cache_control)), bytes(self._settled[end:])]


def _has_calls(message: ModelMessage) -> bool:
    return isinstance(message, AssistantMessage) and any(isinstance(block, ToolCall) for block in message.content)
