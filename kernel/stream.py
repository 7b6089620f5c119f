"""The items of a model's answer, folded into a partial message.

Theory of operation. A provider pushes items; `fold` gives the next `Partial` or a
`Violation`, a value that says why the item is dropped (STR-36). What is legal when:

    before Started     Started, Noted, Ended with a failed stop reason (STR-11)
    after it           block items, Noted, Ended; no second Started
    after Ended        nothing
    a block            opens at the next free index, grows by items of its own kind, ends once;
                       several may be open, and deltas may go to any open one (STR-14);
                       thinking may be signed later, also after its end

A partial is immutable to everyone who looks at it, yet a delta costs O(1): the text of a
block is a list of chunks that all its snapshots share, each knowing how many of them are its
own. Growing the newest snapshot appends to the list; growing an older one copies it first, so
nobody ever sees another's text. Only the block in hand is kept apart from the others, which
makes changing to another block O(blocks).

Texts are joined, halves of surrogate pairs united (STR-28) and tool arguments previewed
(STR-25) only when someone reads `message`; the snapshot then keeps it.

The file is above 400 lines because items, fold and events are one protocol, read together.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType, NoneType
from typing import Any, Final, Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.messages import FAILED, AssistantMessage, StopReason, TextBlock, ThinkingBlock, ToolCall, Usage
from camshaft.kernel.partial_json import final_arguments, joined_halves, preview
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json

# -- items -------------------------------------------------------------------------------


@shapes.frozen
class Started:
    """The answer begins."""

    response_id: str | None = None
    response_model: str | None = None
    usage: Usage | None = None
    provider_thinking_level: str | None = None


@shapes.frozen
class TextStarted:
    """A text block begins, empty as a rule; a text given here stands before that of the deltas."""

    index: int
    text_signature: str | None = None
    text: str = ""


@shapes.frozen
class TextDelta:
    """More text."""

    index: int
    delta: str


@shapes.frozen
class TextEnded:
    """The text is complete. `content` None: what the deltas gave; otherwise it wins (STR-13)."""

    index: int
    content: str | None = None
    text_signature: str | None = None


@shapes.frozen
class ThinkingStarted:
    """A thinking block begins; a redacted one may be complete at once."""

    index: int
    thinking: str = ""
    thinking_signature: str | None = None
    redacted: bool | None = None


@shapes.frozen
class ThinkingDelta:
    """More thinking."""

    index: int
    delta: str


@shapes.frozen
class ThinkingEnded:
    """The thinking is complete. `content` None: what the deltas gave."""

    index: int
    content: str | None = None
    thinking_signature: str | None = None


@shapes.frozen
class ThinkingSigned:
    """A thinking block's signature became known, or is another; it has no event, and the block may have ended."""

    index: int
    thinking_signature: str


@shapes.frozen
class ToolCallStarted:
    """A tool call begins; its arguments follow as pieces of JSON text, or stand as given here if no text follows."""

    index: int
    id: str
    name: str
    arguments: FrozenDict = EMPTY
    text: str | None = None
    """The beginning of the arguments' text, where a server gives some with the start; `arguments` is not looked at then."""


@shapes.frozen
class ToolCallDelta:
    """More of the arguments' text."""

    index: int
    delta: str


@shapes.frozen
class ToolCallEnded:
    """The call is complete. `tool_call` None: its arguments are the strict parse of the deltas (STR-26)."""

    index: int
    tool_call: ToolCall | None = None


@shapes.frozen
class Noted:
    """Something became known that has no event of its own (STR-18). None leaves what was known."""

    usage: Usage | None = None
    response_id: str | None = None
    response_model: str | None = None
    provider_thinking_level: str | None = None


@shapes.frozen
class Ended:
    """The one terminal item (STR-11). None leaves what was known."""

    stop_reason: StopReason
    error_message: str | None = None
    usage: Usage | None = None
    raw_stop_reason: str | None = None
    deferred: FrozenDict | None = None
    diagnostics: Json = None
    response_id: str | None = None
    response_model: str | None = None
    end_turn: bool | None = None
    timestamp: int | None = None
    """Replaces the start of the request; for results that were made earlier (STR-20)."""
    retry_after_ms: int | None = None
    """Of a failure: the wait that the server asks for before it is tried again (WIRE-22). It is told, not stored."""


BlockItem = (
    TextStarted
    | TextDelta
    | TextEnded
    | ThinkingStarted
    | ThinkingDelta
    | ThinkingEnded
    | ThinkingSigned
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallEnded
)
StreamItem = Started | BlockItem | Noted | Ended

ABORTED: Final = Ended("aborted", "Request was aborted")
"""How a cancelled request ends (STR-33)."""

NO_TERMINAL: Final = Ended("error", "Provider stream ended without a terminal event")
"""How a stream ends whose provider returned without saying so (STR-35)."""

SILENT_FAILURE: Final = "Provider failed without an error text"
"""Error text of a failure that gave none; it is never empty (STR-30)."""


@shapes.frozen
class Violation:
    """An item that breaks the protocol; it is dropped and reported, the partial stays (STR-36)."""

    text: str


# -- events ------------------------------------------------------------------------------

EventType = Literal[
    "start",
    "text_start",
    "text_delta",
    "text_end",
    "thinking_start",
    "thinking_delta",
    "thinking_end",
    "toolcall_start",
    "toolcall_delta",
    "toolcall_end",
    "done",
    "error",
]


@shapes.frozen(kw_only=True)
class AssistantMessageEvent:
    """What a subscriber sees of one item (STR-10)."""

    type: EventType
    content_index: int | None = None
    """Index of the block in the message; None for `start`, `done` and `error`."""
    delta: str | None = None
    content: str | None = None
    """The full text, at `text_end` and `thinking_end`."""
    tool_call: ToolCall | None = None
    """The full block, at `toolcall_end`."""
    reason: StopReason | None = None
    """At `done` and `error`."""
    _partial: "Partial" = attrs.field(eq=False, repr=False)

    @property
    def partial(self) -> AssistantMessage:
        """The message when this item had been folded; at `done` and `error` the final one (STR-16)."""
        return self._partial.message


StreamEvent = AssistantMessageEvent


# -- the partial message -----------------------------------------------------------------


@shapes.define(eq=False)
class _Chunks:
    """Text that only grows, shared by the snapshots of one block, with a memo of its beginning."""

    chunks: list[str] = attrs.field(factory=list)
    joined_count: int = 0
    joined: str = ""

    def grown(self, count: int, delta: str) -> "_Chunks":
        """The text whose chunk number `count` is `delta`: this one, or a copy if others have grown it already."""
        if len(self.chunks) == count:
            self.chunks.append(delta)
            return self
        return _Chunks([*self.chunks[:count], delta])

    def text(self, count: int) -> str:
        """The first `count` chunks as one text. A later read joins only what came since."""
        if count < self.joined_count:
            return joined_halves("".join(self.chunks[:count]))
        if count > self.joined_count:
            self.joined = joined_halves(self.joined + "".join(self.chunks[self.joined_count : count]))
            self.joined_count = count
        return self.joined


@shapes.frozen(kw_only=True, eq=False)
class _Block:
    """One block: as it was opened, its text so far, and as it was closed."""

    index: int
    opened: TextBlock | ThinkingBlock | ToolCall
    chunks: _Chunks = attrs.field(factory=_Chunks)
    count: int = 0
    closed: TextBlock | ThinkingBlock | ToolCall | None = None

    @cached_property
    def shown(self) -> TextBlock | ThinkingBlock | ToolCall:
        """The block as a snapshot shows it."""
        return self.closed or _with_text(self.opened, self.chunks, self.count)

    def ended(self) -> TextBlock | ThinkingBlock | ToolCall:
        """The block if nothing follows."""
        return self.closed or _completed(self.opened, self.chunks, self.count)


@shapes.frozen(kw_only=True, eq=False)
class _Frame:
    """What a delta does not change."""

    head: AssistantMessage
    """Everything but the content."""
    started: bool = False
    ended: Ended | None = None
    blocks: tuple[_Block, ...] = ()
    """All blocks; the one in hand may be newer in the partial."""


@shapes.frozen(eq=False)
class Partial:
    """An answer so far. Compare `message`, not partials."""

    _frame: _Frame
    _block: _Block | None = None
    """The block in hand."""
    _count: int = 0
    """Its chunks."""

    @property
    def started(self) -> bool:
        """Whether `Started` was folded."""
        return self._frame.started

    @property
    def ended(self) -> Ended | None:
        """The terminal item, once it was folded."""
        return self._frame.ended

    @property
    def usage(self) -> Usage:
        """What is known of the usage, without building the message."""
        return self._frame.head.usage

    @cached_property
    def message(self) -> AssistantMessage:
        """The snapshot: `pending`, or the final message once ended. Built on the first read, O(text)."""
        if self.ended is not None:
            return finish(self, self.ended)
        return attrs.evolve(self._frame.head, content=tuple([block.shown for block in _blocks_of(self)]))


def begin(api: str, provider: str, model: str, timestamp: int) -> Partial:
    """An empty answer to a request made at `timestamp`, ms since the Unix epoch (STR-17)."""
    head = AssistantMessage(content=(), api=api, provider=provider, model=model, stop_reason="pending", timestamp=timestamp)
    return Partial(_Frame(head=head))


def fold(partial: Partial, item: StreamItem) -> Partial | Violation:
    """The answer with `item`, or why the item is dropped. O(1); O(blocks) when another block than last time is meant."""
    step = _STEPS.get(type(item))
    if step is None:
        return Violation(f"{item!r} is no stream item")
    ended = partial._frame.ended
    if ended is not None:
        return Violation(f"{type(item).__name__} after the stream ended with {ended.stop_reason!r}")
    return step(partial, item)


def finish(partial: Partial, ended: Ended) -> AssistantMessage:
    """The final message: what was received, ended this way (STR-30, STR-33). Takes partials in every state.

    Calls still open get their strictly parsed arguments, or in a failed message, where nothing runs, their preview.
    """
    is_failure = ended.stop_reason in FAILED
    blocks = [block.shown if is_failure else block.ended() for block in _blocks_of(partial)]
    error = ended.error_message
    if is_failure and not (error and error.strip()):
        error = ABORTED.error_message if ended.stop_reason == "aborted" else SILENT_FAILURE
    return attrs.evolve(
        _noted(partial._frame.head, ended),
        content=tuple(blocks),
        stop_reason=ended.stop_reason,
        error_message=error,
        raw_stop_reason=ended.raw_stop_reason,
        deferred=ended.deferred,
        diagnostics=ended.diagnostics,
        end_turn=ended.end_turn,
        timestamp=partial._frame.head.timestamp if ended.timestamp is None else ended.timestamp,
    )


def event_of(partial_after: Partial, item: StreamItem) -> AssistantMessageEvent | None:
    """The event of an item that was folded into `partial_after`; None for `Noted` (STR-18) and `ThinkingSigned`, which have none."""
    if isinstance(item, (Noted, ThinkingSigned)):
        return None
    kind = _EVENTS[type(item)]
    if isinstance(item, Ended):
        return AssistantMessageEvent(type="error" if item.stop_reason in FAILED else "done", reason=item.stop_reason, partial=partial_after)
    if isinstance(item, Started):
        return AssistantMessageEvent(type=kind, partial=partial_after)
    if isinstance(item, (TextDelta, ThinkingDelta, ToolCallDelta)):
        return AssistantMessageEvent(type=kind, content_index=item.index, delta=item.delta, partial=partial_after)
    return _edge_event(kind, partial_after, item)


# -- steps -------------------------------------------------------------------------------


def _start(partial: Partial, item: Started) -> Partial | Violation:
    if partial.started:
        return Violation("Started a second time")
    return _framed(partial, head=_noted(partial._frame.head, item), started=True)


def _note(partial: Partial, item: Noted) -> Partial | Violation:
    return _framed(partial, head=_noted(partial._frame.head, item))


def _end(partial: Partial, item: Ended) -> Partial | Violation:
    if item.stop_reason == "pending":
        return Violation("Ended with 'pending', which is no stop reason of a finished message")
    if not partial.started and item.stop_reason not in FAILED:
        return Violation(f"Ended with {item.stop_reason!r} before Started")
    return _framed(partial, head=_noted(partial._frame.head, item), ended=item)


def _open(partial: Partial, item: TextStarted | ThinkingStarted | ToolCallStarted) -> Partial | Violation:
    name, count = type(item).__name__, len(partial._frame.blocks)
    if not partial.started:
        return Violation(f"{name} before Started")
    if item.index != count:
        return Violation(f"{name} with index {item.index!r}; the next block has index {count}")
    if isinstance(item, ToolCallStarted) and not isinstance(item.arguments, FrozenDict):
        return Violation(f"ToolCallStarted for block {item.index} with arguments {item.arguments!r}, which are no FrozenDict")
    if isinstance(item, ToolCallStarted) and not isinstance(item.text, (str, NoneType)):
        return Violation(f"ToolCallStarted for block {item.index} with a text that is none: {item.text!r}")
    given = [item.text] if isinstance(item, ToolCallStarted) and item.text else []
    block = _Block(index=count, opened=_opened(item), chunks=_Chunks(given), count=len(given))
    return Partial(attrs.evolve(partial._frame, blocks=(*_blocks_of(partial), block)), block, block.count)


def _grow(partial: Partial, item: TextDelta | ThinkingDelta | ToolCallDelta) -> Partial | Violation:
    block = partial._block
    if block is None or block.index != item.index:
        partial = _turned_to(partial, item.index)
        block = partial._block
    if block is None or block.closed is not None or type(block.opened) is not _TAKES[type(item)] or type(item.delta) is not str:
        return _refused(partial, item)
    chunks = block.chunks.grown(partial._count, item.delta)
    if chunks is not block.chunks:
        block = attrs.evolve(block, chunks=chunks)
    return Partial(partial._frame, block, partial._count + 1)


def _close(partial: Partial, item: TextEnded | ThinkingEnded | ToolCallEnded) -> Partial | Violation:
    partial = _turned_to(partial, item.index)
    block = partial._block
    if block is None or block.closed is not None or type(block.opened) is not _TAKES[type(item)]:
        return _refused(partial, item)
    if isinstance(item, ToolCallEnded) and not isinstance(item.tool_call, (ToolCall, NoneType)):
        return Violation(f"ToolCallEnded for block {item.index} with {item.tool_call!r}, which is no ToolCall")
    return Partial(partial._frame, attrs.evolve(block, closed=_closed(block, item)), block.count)


def _sign(partial: Partial, item: ThinkingSigned) -> Partial | Violation:
    if type(item.thinking_signature) is not str:
        return Violation(f"ThinkingSigned for block {item.index} with a signature that is no text: {item.thinking_signature!r}")
    partial = _turned_to(partial, item.index)
    block = partial._block
    known = block and (block.closed or block.opened)
    if block is None or not isinstance(known, ThinkingBlock):
        return _refused(partial, item)
    signed = attrs.evolve(known, thinking_signature=item.thinking_signature)
    changed = attrs.evolve(block, opened=signed) if block.closed is None else attrs.evolve(block, closed=signed)
    return Partial(partial._frame, changed, block.count)


_STEPS: Final[Mapping[type[Any], Callable[[Partial, Any], Partial | Violation]]] = MappingProxyType(
    {
        Started: _start,
        Noted: _note,
        Ended: _end,
        TextStarted: _open,
        ThinkingStarted: _open,
        ToolCallStarted: _open,
        TextDelta: _grow,
        ThinkingDelta: _grow,
        ToolCallDelta: _grow,
        TextEnded: _close,
        ThinkingEnded: _close,
        ThinkingSigned: _sign,
        ToolCallEnded: _close,
    }
)

_TAKES: Final[Mapping[type[Any], type[Any]]] = MappingProxyType(
    {
        TextDelta: TextBlock,
        TextEnded: TextBlock,
        ThinkingDelta: ThinkingBlock,
        ThinkingEnded: ThinkingBlock,
        ThinkingSigned: ThinkingBlock,
        ToolCallDelta: ToolCall,
        ToolCallEnded: ToolCall,
    }
)
"""Which kind of block an item goes to."""

_EVENTS: Final[Mapping[type[Any], EventType]] = MappingProxyType(
    {
        Started: "start",
        TextStarted: "text_start",
        TextDelta: "text_delta",
        TextEnded: "text_end",
        ThinkingStarted: "thinking_start",
        ThinkingDelta: "thinking_delta",
        ThinkingEnded: "thinking_end",
        ToolCallStarted: "toolcall_start",
        ToolCallDelta: "toolcall_delta",
        ToolCallEnded: "toolcall_end",
        Ended: "done",
    }
)

# -- leaves ------------------------------------------------------------------------------


def _noted(head: AssistantMessage, item: Started | Noted | Ended) -> AssistantMessage:
    """`head` with what the item says and None leaves alone."""
    return attrs.evolve(
        head,
        usage=item.usage or head.usage,
        response_id=item.response_id or head.response_id,
        response_model=item.response_model or head.response_model,
        provider_thinking_level=getattr(item, "provider_thinking_level", None) or head.provider_thinking_level,
    )


def _framed(partial: Partial, **changes: Any) -> Partial:
    """The same content in a changed frame."""
    return Partial(attrs.evolve(partial._frame, **changes), partial._block, partial._count)


def _blocks_of(partial: Partial) -> tuple[_Block, ...]:
    """All blocks, the one in hand at its newest."""
    block, blocks = partial._block, partial._frame.blocks
    if block is None or (blocks[block.index] is block and block.count == partial._count):
        return blocks
    if block.count != partial._count:
        block = attrs.evolve(block, count=partial._count)
    return (*blocks[: block.index], block, *blocks[block.index + 1 :])


def _turned_to(partial: Partial, index: object) -> Partial:
    """The same answer with another block in hand, or none if there is no such block."""
    blocks = _blocks_of(partial)
    frame = attrs.evolve(partial._frame, blocks=blocks)
    if type(index) is not int or not 0 <= index < len(blocks):
        return Partial(frame)
    return Partial(frame, blocks[index], blocks[index].count)


def _refused(partial: Partial, item: BlockItem) -> Violation:
    name, block = type(item).__name__, partial._block
    if not partial.started:
        return Violation(f"{name} before Started")
    if block is None:
        return Violation(f"{name} for unknown block {item.index!r}; there are {len(partial._frame.blocks)}")
    if type(block.opened) is not _TAKES[type(item)]:
        return Violation(f"{name} for block {item.index}, which is a {type(block.opened).__name__}")
    if block.closed is not None:
        return Violation(f"{name} for block {item.index}, which has ended")
    return Violation(f"{name} for block {item.index} with a delta that is no text: {getattr(item, 'delta', None)!r}")


def _opened(item: TextStarted | ThinkingStarted | ToolCallStarted) -> TextBlock | ThinkingBlock | ToolCall:
    if isinstance(item, TextStarted):
        return TextBlock(text=item.text, text_signature=item.text_signature)
    if isinstance(item, ThinkingStarted):
        return ThinkingBlock(thinking=item.thinking, thinking_signature=item.thinking_signature, redacted=item.redacted)
    return ToolCall(id=item.id, name=item.name, arguments=item.arguments)


def _with_text(opened: TextBlock | ThinkingBlock | ToolCall, chunks: _Chunks, count: int) -> TextBlock | ThinkingBlock | ToolCall:
    """The block with its first `count` chunks; arguments given at the start show until there is text."""
    text = chunks.text(count)
    if isinstance(opened, TextBlock):
        return attrs.evolve(opened, text=joined_halves(opened.text + text) if opened.text else text)
    if isinstance(opened, ThinkingBlock):
        return attrs.evolve(opened, thinking=joined_halves(opened.thinking + text) if opened.thinking else text)
    return attrs.evolve(opened, arguments=preview(text, chunks.chunks[:count])) if text else opened


def _completed(opened: TextBlock | ThinkingBlock | ToolCall, chunks: _Chunks, count: int) -> TextBlock | ThinkingBlock | ToolCall:
    if not isinstance(opened, ToolCall):
        return _with_text(opened, chunks, count)
    text = chunks.text(count)
    if not text:
        return opened
    arguments, error = final_arguments(text)
    return attrs.evolve(opened, arguments=arguments, arguments_error=error)


def _closed(block: _Block, item: TextEnded | ThinkingEnded | ToolCallEnded) -> TextBlock | ThinkingBlock | ToolCall:
    """The finished block: what the item says wins over what the deltas gave."""
    if isinstance(item, ToolCallEnded) and item.tool_call is not None:
        return item.tool_call
    done = _completed(block.opened, block.chunks, block.count)
    if isinstance(item, TextEnded) and isinstance(done, TextBlock):
        text = done.text if item.content is None else joined_halves(item.content)
        return attrs.evolve(done, text=text, text_signature=item.text_signature or done.text_signature)
    if isinstance(item, ThinkingEnded) and isinstance(done, ThinkingBlock):
        thinking = done.thinking if item.content is None else joined_halves(item.content)
        return attrs.evolve(done, thinking=thinking, thinking_signature=item.thinking_signature or done.thinking_signature)
    return done


def _edge_event(kind: EventType, partial: Partial, item: BlockItem) -> AssistantMessageEvent:
    """The event of a block's start or end; an end tells the block as it was closed."""
    closed = _blocks_of(partial)[item.index].closed
    content = None
    if isinstance(closed, TextBlock):
        content = closed.text
    elif isinstance(closed, ThinkingBlock):
        content = closed.thinking
    return AssistantMessageEvent(
        type=kind,
        content_index=item.index,
        content=content,
        tool_call=closed if isinstance(closed, ToolCall) else None,
        partial=partial,
    )
