"""The words of a script: actions, steps, and builders of messages and items (FAUX-4, FAUX-22)."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

import attrs

from camshaft.actors.api import (
    EMPTY,
    NO_USAGE,
    AssistantMessage,
    Block,
    Emit,
    Json,
    Model,
    ModelRequest,
    Signal,
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

# -- actions -----------------------------------------------------------------------------


@attrs.frozen
class Sleep:
    """Wait; an abort ends the wait."""

    seconds: float


@attrs.frozen
class WaitGate:
    """Wait until `ScriptedProvider.open_gate(name)` was called, or the request is aborted."""

    name: str


@attrs.frozen
class OpenGate:
    """Open a gate."""

    name: str


def _require_text(_fail: Any, _field: Any, value: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"Fail({value!r}) has no text; write Fail({str(value)!r}), or let a function of the script raise it")


@attrs.frozen
class Fail:
    """End with stop reason `error`; with a status the text becomes `STATUS TEXT`, as HTTP errors are told."""

    text: str = attrs.field(validator=_require_text)
    """Raises TypeError for anything else, an exception for example."""
    status: int | None = None


@attrs.frozen
class Drop:
    """End without a terminal item, as a dropped connection does."""


@attrs.frozen
class Hang:
    """Wait until the request is aborted."""


@attrs.frozen
class Call:
    """Run a function of the test at this point; what it raises fails the request."""

    body: Callable[[], Awaitable[None] | None]


Action = StreamItem | Sleep | WaitGate | OpenGate | Fail | Drop | Hang | Call
Answer = Callable[[ModelRequest], AssistantMessage | Awaitable[AssistantMessage]]
Live = Callable[[ModelRequest, Signal, Emit], Awaitable[None]]
Step = AssistantMessage | Answer | Live | Sequence[Action]

_ACTIONS: Final = (*get_args(StreamItem), Sleep, WaitGate, OpenGate, Fail, Drop, Hang, Call)


def checked_steps(steps: Iterable[Step]) -> list[Step]:
    """The steps as a list. Raises TypeError for what is no step; the text says what to write instead."""
    if isinstance(steps, str | AssistantMessage) or not isinstance(steps, Iterable):
        raise TypeError(f"the steps are {steps!r}; write a list of steps, for example [assistant('hello')]")
    found = list(steps)
    for step in found:
        wrong = _wrong(step)
        if wrong is not None:
            raise TypeError(wrong)
    return found


def _wrong(step: object) -> str | None:
    """What is wrong with a step. A text would be played as a list of actions, letter by letter."""
    if isinstance(step, str | TextBlock | ThinkingBlock | ToolCall):
        return f"a step is {step!r}; write assistant({step!r})"
    if isinstance(step, _ACTIONS):
        return f"a step is the action {step!r}; write a list of actions, [{step!r}]"
    if isinstance(step, BaseException):
        return f"a step is the exception {step!r}; write [Fail({str(step)!r})]"
    if isinstance(step, tuple | list):
        wrong = [item for item in step if not isinstance(item, _ACTIONS)]
        return f"a list of actions holds {wrong[0]!r}; expected stream items, Sleep, Fail, Hang and the like" if wrong else None
    if isinstance(step, AssistantMessage) or (callable(step) and not isinstance(step, type)):
        return None
    return f"a step is {step!r}; expected assistant(...), a function of the request, or a list of actions"


# -- builders (FAUX-4) -------------------------------------------------------------------


def text(value: str) -> TextBlock:
    """A text block."""
    return TextBlock(text=value)


def thinking(value: str, *, signature: str | None = None) -> ThinkingBlock:
    """A thinking block."""
    return ThinkingBlock(thinking=value, thinking_signature=signature)


def tool_call(name: str, arguments: Mapping[str, Json] = EMPTY, *, id: str = "") -> ToolCall:
    """A tool call. An empty id is replaced by `call_<n>`, unique in the provider, when it is streamed."""
    return ToolCall(id=id, name=name, arguments=freeze(arguments))


def assistant(
    content: str | Block | Iterable[Block] = "", *, stop_reason: StopReason = "stop", usage: Usage = NO_USAGE, **fields: Any
) -> AssistantMessage:
    """A message to script: a text, one block or several; `fields` are further fields of AssistantMessage.

    Api, provider and model are those of the request. Usage given here is kept as it is (FAUX-21), without it
    the provider estimates. Without `timestamp` the message has the time of its end.
    """
    given: dict[str, Any] = {"api": "", "provider": "", "model": "", "timestamp": 0, **fields}
    return AssistantMessage(content=_blocks(content), stop_reason=stop_reason, usage=usage, **given)


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


def faux_model(id: str = "faux-1", *, provider: str = "faux", api: str = "faux", **fields: Any) -> Model:
    """A model for scripts: text and image, no cost, window 128,000, output 16,384 (FAUX-1); `fields` replace."""
    given: dict[str, Any] = {"name": "Faux Model", "base_url": "http://localhost:0", "input": ("text", "image"), **fields}
    return Model(id=id, provider=provider, api=api, **given)


def _blocks(content: str | Block | Iterable[Block]) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (TextBlock(text=content),)
    return (content,) if attrs.has(type(content)) else tuple(content)  # type: ignore[arg-type, return-value]  # attrs classes are the blocks
