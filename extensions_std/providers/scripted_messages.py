"""Builders for scripts: models, messages, and the stream items of their blocks (FAUX-1, FAUX-4)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from camshaft.actors.api import (
    EMPTY,
    NO_USAGE,
    AssistantMessage,
    Block,
    Ended,
    Json,
    Model,
    Started,
    StopReason,
    StreamItem,
    TextBlock,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingBlock,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCall,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    dumps,
    freeze,
)

STOP_REASONS: Final = ("stop", "length", "toolUse", "deferred", "error", "aborted", "pending")
"""How a scripted message may end; `pending` makes the request fail (FAUX-7)."""

# -- messages ----------------------------------------------------------------------------


def text(value: str) -> TextBlock:
    """A text block."""
    return TextBlock(text=value)


def thinking(value: str, *, signature: str | None = None) -> ThinkingBlock:
    """A thinking block."""
    return ThinkingBlock(thinking=value, thinking_signature=signature)


def tool_call(name: str, arguments: Mapping[str, Json] = EMPTY, *, id: str = "") -> ToolCall:
    """A tool call. An empty id is replaced by `call_<n>`, unique in the session, when it is streamed."""
    return ToolCall(id=id, name=name, arguments=freeze(arguments))


def assistant(
    content: str | Block | Iterable[Block] = "", *, stop_reason: StopReason = "stop", usage: Usage = NO_USAGE, **fields: Any
) -> AssistantMessage:
    """A message to script: a text, one block or several; `fields` are further fields of AssistantMessage.

    Api, provider and model are those of the request. Usage given here is kept as it is, zeros too (FAUX-21); without
    it the provider estimates. Without `timestamp` the message has the time of its end. Raises TypeError for content
    that no model sends, ValueError for a stop reason that does not exist.
    """
    if stop_reason not in STOP_REASONS:
        raise ValueError(f"stop_reason is {stop_reason!r}; expected one of {', '.join(STOP_REASONS)}")
    given: dict[str, Any] = {"api": "", "provider": "", "model": "", "timestamp": 0, **fields}
    return AssistantMessage(content=_blocks(content), stop_reason=stop_reason, usage=usage, **given)


def _blocks(content: str | Block | Iterable[Block]) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (TextBlock(text=content),)
    blocks = tuple(content) if isinstance(content, list | tuple) else (content,)
    for block in blocks:
        if not isinstance(block, TextBlock | ThinkingBlock | ToolCall):
            raise TypeError(f"the content of a message holds {block!r}; expected a text, or blocks such as text('a') and tool_call('read')")
    return blocks


def faux_model(id: str = "faux-1", *, provider: str = "faux", api: str = "faux", **fields: Any) -> Model:
    """A model for scripts: text and image, no cost, window 128,000, output 16,384 (FAUX-1); `fields` replace."""
    given: dict[str, Any] = {"name": "Faux Model", "base_url": "http://localhost:0", "input": ("text", "image"), **fields}
    return Model(id=id, provider=provider, api=api, **given)


# -- items -------------------------------------------------------------------------------


def text_items(index: int, *fragments: str) -> tuple[StreamItem, ...]:
    """Items of a whole text block, one delta a fragment; a fragment may be half a surrogate pair."""
    return (TextStarted(index=index), *[TextDelta(index=index, delta=each) for each in fragments], TextEnded(index=index))


def thinking_items(index: int, *fragments: str, signature: str | None = None) -> tuple[StreamItem, ...]:
    """Items of a whole thinking block, one delta a fragment."""
    deltas = [ThinkingDelta(index=index, delta=each) for each in fragments]
    return (ThinkingStarted(index=index), *deltas, ThinkingEnded(index=index, thinking_signature=signature))


def tool_call_items(index: int, id: str, name: str, *fragments: str) -> tuple[StreamItem, ...]:
    """Items of a whole tool call whose argument text arrives in fragments; the kernel parses it (STR-26)."""
    deltas = [ToolCallDelta(index=index, delta=each) for each in fragments]
    return (ToolCallStarted(index=index, id=id, name=name), *deltas, ToolCallEnded(index=index))


def block_items(index: int, block: Block, chunks: Callable[[str], Iterable[str]]) -> Iterator[StreamItem]:
    """Items of a whole block of a message; `chunks` cuts its text. Raises ValueError for a block that no model sends."""
    match block:
        case TextBlock():
            yield TextStarted(index=index)
            for chunk in chunks(block.text):
                yield TextDelta(index=index, delta=chunk)
            yield TextEnded(index=index, text_signature=block.text_signature)
        case ThinkingBlock(redacted=True):
            signature = block.thinking_signature
            yield ThinkingStarted(index=index, thinking=block.thinking, thinking_signature=signature, redacted=True)
            yield ThinkingEnded(index=index, thinking_signature=signature)
        case ThinkingBlock():
            yield ThinkingStarted(index=index)
            for chunk in chunks(block.thinking):
                yield ThinkingDelta(index=index, delta=chunk)
            yield ThinkingEnded(index=index, thinking_signature=block.thinking_signature)
        case ToolCall():
            yield ToolCallStarted(index=index, id=block.id, name=block.name)
            for chunk in chunks(dumps(block.arguments).decode()):
                yield ToolCallDelta(index=index, delta=chunk)
            yield ToolCallEnded(index=index, tool_call=block)
        case _:
            raise ValueError(f"content[{index}]: {block!r} cannot be streamed; expected a text, thinking or toolCall block")


def message_items(message: AssistantMessage) -> tuple[StreamItem, ...]:
    """Items of a whole message, one delta a block: to put a wait, a gate or a failure between them.

    Tool calls need ids here. Usage that was not given stays unknown.
    """
    blocks = [item for index, block in enumerate(message.content) for item in block_items(index, block, lambda whole: (whole,))]
    return (start_of(message), *blocks, end_of(message, None if message.usage is NO_USAGE else message.usage))


def start_of(message: AssistantMessage) -> Started:
    """The first item of a message."""
    level = message.provider_thinking_level
    return Started(response_id=message.response_id, response_model=message.response_model, provider_thinking_level=level)


def end_of(message: AssistantMessage, usage: Usage | None) -> Ended:
    """The last item of a message."""
    return Ended(
        stop_reason=message.stop_reason,
        error_message=message.error_message,
        usage=usage,
        raw_stop_reason=message.raw_stop_reason,
        deferred=message.deferred,
        diagnostics=message.diagnostics,
        end_turn=message.end_turn,
        timestamp=message.timestamp or None,
    )
