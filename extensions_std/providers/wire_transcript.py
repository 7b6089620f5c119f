"""Prepared messages as an API takes them, encoded once each.

Theory of operation. A `Transcript` follows the message list of one session. While the list only
grows, a request costs its new messages: the JSON of all settled wire messages is kept in one buffer,
and a request copies that once. Two things can undo that, and then everything is made again from the
first message on: the list is not a continuation of the last one (a compaction, another branch), or
what the old bytes rest on has changed (grammar tools, a replay of the prompt that folds what stood in
place). Lists are compared element by element, and the comparison of a message with itself is one of
identity, so finding out that nothing changed is cheap.

Wire messages that could still change stay out of the kept list: results made up for open calls,
held system messages, and what an API's renderer holds back.

How messages are written is said by a `Form`, one per API and model.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, Self

import attrs

from camshaft.actors.api import AssistantMessage, Model, ModelMessage, SystemMessage, ToolCall, ToolDeclaration, ToolResultMessage
from camshaft.extensions_std.providers.budget import InputEstimate
from camshaft.extensions_std.providers.preparation import CallId, Preparation, PromptReplay, encoded

Wire = dict[str, Any]
"""A message, item or tool as an API takes it."""


class Renderer(Protocol):
    """Prepared messages to wire messages. Small: it is copied for every request's tail."""

    def add(self, message: ModelMessage) -> Sequence[Wire]:
        """The wire messages that are settled now, in order."""
        ...

    def tail(self) -> Sequence[Wire]:
        """What was held back, if nothing follows; given once."""
        ...

    def copied(self) -> Self:
        """One that goes on from here on its own."""
        ...


@attrs.frozen(kw_only=True)
class Form:
    """How one API writes the messages of one model down."""

    renderer: Callable[[Mapping[str, str]], Renderer]
    """Begins a renderer; gets the tools that are called with plain text, to the property that holds it (WIRE-39)."""
    call_id: CallId
    """The rule for ids of foreign calls (WIRE-19b)."""
    grammars: Callable[[Iterable[ToolDeclaration]], dict[str, str]] = lambda _tools: {}
    """Which of the tools are called with plain text."""
    keeps_system: bool = False
    """Whether later system messages stay in place (WIRE-11); otherwise the leading one tells them all."""
    keeps_tools: bool = False
    """Whether tools added later are sent in place too (WIRE-79)."""
    keeps_strays: bool = False
    """Whether a result is sent whose call was never seen."""
    unique_call_ids: bool = False
    """Whether no two calls of a request may share an id, wherever they stand."""
    can_bear_mark: Callable[[Wire], bool] = lambda _wire: False
    """Whether a cache mark can stand in a wire message."""
    with_mark: Callable[[Wire, Wire], Wire] = lambda wire, _mark: wire
    """A wire message that can bear one, with a cache mark."""
    marks_only_last: bool = False
    """Whether the mark stands in the very last message or nowhere; otherwise in the last one that can bear it."""


@attrs.define(eq=False)
class Transcript:
    """The wire messages of one session, kept from request to request; see the header."""

    model: Model
    _form: Form
    _seen: list[ModelMessage] = attrs.field(factory=list, init=False)
    _settled: bytearray = attrs.field(factory=bytearray, init=False)
    """Settled wire messages as JSON, with commas between them, without the leading system message."""
    _bearer: Wire | None = attrs.field(default=None, init=False)
    """The last settled message that can bear the cache mark, if there is one."""
    _newest: list[bytes] = attrs.field(factory=list, init=False)
    """The bearer and all settled messages after it: they stay out of the buffer, because the bearer is sent in two ways."""
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
    _grammars: dict[str, str] = attrs.field(factory=dict, init=False)
    """What the renderer was begun with."""
    _made: dict[str, tuple[object, bytes]] = attrs.field(factory=dict, init=False)
    """By name what was made last, and of what."""
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

    def wire_messages(self, cache_control: Wire | None, first: bytes = b"") -> list[bytes | bytearray]:
        """The list of messages as JSON, in pieces to be joined at once; `first`, if any, stands before all others."""
        renderer = self._renderer.copied()
        rest: list[Wire] = []
        for message in self._preparation.tail():
            rest += renderer.add(message)
        rest += renderer.tail()
        newest = list(self._newest)
        if cache_control is not None:
            self._mark(newest, rest, cache_control)
        parts = [*[part for part in (first, self._settled) if part], *newest, *map(encoded, rest)]
        return [b"[", *[piece for index, part in enumerate(parts) for piece in (b"," if index else b"", part)], b"]"]

    @property
    def leading_text(self) -> str:
        """The prompt, as far as no system message in place tells it; may be empty."""
        return self._leading.text

    def remade(self, name: str, key: Any, make: Callable[[Any], bytes]) -> bytes:
        """What `make` gave for `key` last time under this name, if the key is the same now; else what it gives."""
        known = self._made.get(name)
        if known is None or known[0] != key:
            known = self._made[name] = (key, make(key))
        return known[1]

    @property
    def tools(self) -> tuple[ToolDeclaration, ...]:
        """The tools of the top-level list: the current ones, without those sent in place (WIRE-79)."""
        return tuple((self._leading if self._keeps_tools else self._prompt).tools.values())

    @property
    def _keeps_tools(self) -> bool:
        return self._form.keeps_system and self._form.keeps_tools

    @property
    def has_tool_history(self) -> bool:
        """Whether the history has calls or results."""
        return self._has_tools

    def grammars(self) -> dict[str, str]:
        """Current tools that are called with plain text, to the property that holds it."""
        return self._form.grammars(self._prompt.tools.values())

    def _restart(self, messages: list[ModelMessage]) -> None:
        """Makes everything again: the leading message tells what cannot stay in place."""
        folded = self._fold_end(messages)
        self._settled, self._bearer, self._newest, self._seen = bytearray(), None, [], messages
        self._prompt, self._leading, self._declared = PromptReplay(), PromptReplay(), set()
        self._has_others = self._has_tools = False
        self.estimate = InputEstimate()
        self._preparation = Preparation(
            self.model, self._form.call_id, self._form.keeps_system, self._form.keeps_strays, self._form.unique_call_ids
        )
        everything = PromptReplay()
        for message in messages:
            if isinstance(message, SystemMessage):
                everything.add(message)
        self._grammars = self._form.grammars(everything.tools.values())
        self._renderer = self._form.renderer(self._grammars)
        for index, message in enumerate(messages):
            self._take(message, is_leading=index < folded)

    def _fold_end(self, messages: list[ModelMessage]) -> int:
        """How many messages from the start have their system messages told by the leading one (WIRE-11, WIRE-79)."""
        if not self._form.keeps_system:
            return len(messages)
        end, declared, at_start = 0, set[str](), True
        for index, message in enumerate(messages):
            if not isinstance(message, SystemMessage):
                at_start = False
                continue
            added = [tool.name for tool in message.tools_added or ()]
            changes_tools = self._keeps_tools and (message.tools_removed or not declared.isdisjoint(added))
            if at_start or message.replace or changes_tools:
                end = index + 1
            declared.update(added)
        return end

    def _add(self, message: ModelMessage) -> bool:
        """Continues with one message; False if what was made so far no longer fits."""
        if not isinstance(message, SystemMessage):
            self._take(message, is_leading=False)
            return True
        added = [tool.name for tool in message.tools_added or ()]
        if message.replace or (self._keeps_tools and (message.tools_removed or not self._declared.isdisjoint(added))):
            return False
        self._take(message, is_leading=not self._form.keeps_system or not self._has_others)
        return self.grammars() == self._grammars

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
        can_bear = self._form.can_bear_mark(wire)
        if can_bear or self._bearer is None or self._form.marks_only_last:
            for made in self._newest:
                self._keep(made)
            self._newest, self._bearer = [], wire if can_bear else None
        if self._bearer is None:
            self._keep(encoded(wire))
        else:
            self._newest.append(encoded(wire))

    def _keep(self, made: bytes) -> None:
        if self._settled:
            self._settled += b","
        self._settled += made

    def _mark(self, newest: list[bytes], rest: list[Wire], cache_control: Wire) -> None:
        """Marks the message that bears the mark, in `rest` or else the first of `newest`."""
        for index in reversed(range(len(rest))):
            if self._form.can_bear_mark(rest[index]):
                rest[index] = self._form.with_mark(rest[index], cache_control)
                return
            if self._form.marks_only_last:
                return
        if self._bearer is not None:
            newest[0] = encoded(self._form.with_mark(self._bearer, cache_control))


def joined(fields: Mapping[str, bytes], name: str, messages: Iterable[bytes | bytearray]) -> bytes:
    """A body of encoded fields, in order; `messages`, by far the largest part, stand in for field `name` and are copied once."""
    pieces: list[bytes | bytearray] = []
    for field, value in fields.items():
        pieces += [b"," if pieces else b"{", encoded(field), b":"]
        pieces += messages if field == name and not value else [value]
    return b"".join([*pieces, b"}"])


def _has_calls(message: ModelMessage) -> bool:
    return isinstance(message, AssistantMessage) and any(isinstance(block, ToolCall) for block in message.content)
