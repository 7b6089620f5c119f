"""What a registry of models is asked, what it gives back, and who does it (MOD-40, STR-1 to STR-4, STR-43)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import attrs
import trio

from camshaft.actors.providers import RequestOptions
from camshaft.actors.signal import AbortSignal
from camshaft.kernel import shapes
from camshaft.kernel.convert import model_messages
from camshaft.kernel.messages import AssistantMessage, Message, ModelMessage, SystemMessage, ToolDeclaration, UserMessage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json
from camshaft.kernel.stream import AssistantMessageEvent, Partial
from camshaft.kernel.tools import Signal


@shapes.frozen(kw_only=True)
class Asking:
    """One request as it is asked for."""

    model: Model
    messages: str | Sequence[Message]
    """One question, or a conversation that ends with one."""
    system_prompt: str | None = None
    tools: Sequence[ToolDeclaration] = ()
    thinking_level: str = "off"
    options: RequestOptions = RequestOptions()
    signal: Signal | None = None

    def transcript(self, now_ms: int) -> tuple[ModelMessage, ...]:
        """What the provider sees: prompt and tools are one leading system message (STR-2)."""
        given = (UserMessage(content=self.messages, timestamp=now_ms),) if isinstance(self.messages, str) else self.messages
        if self.system_prompt is None and not self.tools:
            return tuple(model_messages(given))
        head = SystemMessage(content=self.system_prompt or "", tools_added=tuple(self.tools) or None, timestamp=0)
        return (head, *model_messages(given))


@shapes.define(eq=False)
class ModelStream:
    """An answer as it comes: iterate over its events, or await `result()`, or both. The last event is `done` or `error`."""

    _receive: trio.MemoryReceiveChannel[AssistantMessageEvent] = attrs.field(repr=False)
    partial: Partial = attrs.field(repr=False)
    """Before anything came."""
    aborting: AbortSignal = attrs.field(factory=AbortSignal, repr=False)
    """Set by `abort`."""
    _done: trio.Event = attrs.field(factory=trio.Event, repr=False)
    _message: AssistantMessage | None = None

    def __aiter__(self) -> "ModelStream":
        return self

    async def __anext__(self) -> AssistantMessageEvent:
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    async def result(self) -> AssistantMessage:
        """The final message, also without iterating; its stop reason says how the request ended, its `duration_ms` how long it took."""
        await self._done.wait()
        assert self._message is not None
        return self._message

    def abort(self) -> None:
        """The answer is no longer wanted; it ends soon, with what has come."""
        self.aborting.request()

    def finish(self, message: AssistantMessage, duration_ms: int) -> None:
        """The answer is over."""
        is_timed = message.duration_ms is not None or message.timestamp < self.partial.message.timestamp
        self._message = message if is_timed else attrs.evolve(message, duration_ms=duration_ms)
        self._done.set()


OtherStop = Literal["stop", "error", "aborted"]
STOPS: Final = ("stop", "error", "aborted")


@shapes.frozen(kw_only=True)
class OtherRequest:
    """What an image or classifier model is asked."""

    model: Model
    input: Json
    """As the caller gave it: what a model takes is between the caller and whoever implements its API."""
    signal: Signal
    """Set when nobody wants the result any more."""
    options: FrozenDict = EMPTY


@shapes.frozen(kw_only=True)
class ImagesResult:
    """What came of `generate_images` (STR-43)."""

    api: str
    provider: str
    model: str
    output: tuple[Json, ...] = ()
    response_id: str | None = None
    usage: Json = None
    stop_reason: OtherStop = "stop"
    error_message: str | None = None
    timestamp: int
    """Wall clock, ms since the Unix epoch."""


@shapes.frozen(kw_only=True)
class ClassifierResult:
    """What came of `classify` (STR-43)."""

    api: str
    provider: str
    model: str
    answers: FrozenDict = EMPTY
    response_id: str | None = None
    usage: Json = None
    stop_reason: OtherStop = "stop"
    error_message: str | None = None
    timestamp: int
    """Wall clock, ms since the Unix epoch."""


class Asks(Protocol):
    """Who makes the requests of a conversation."""

    def stream(self, asking: Asking, *, is_simple: bool) -> ModelStream:
        """A stream, at once. Not `is_simple`: what the options say is sent as it is (STR-4)."""
        ...

    async def generate_images(self, model: Model, input: object, options: Mapping[str, Any], signal: Signal | None) -> ImagesResult:
        """The images, or why there are none; never raises."""
        ...

    async def classify(self, model: Model, input: object, options: Mapping[str, Any], signal: Signal | None) -> ClassifierResult:
        """The answers, or why there are none; never raises."""
        ...
