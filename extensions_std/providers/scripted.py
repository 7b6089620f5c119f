"""The scripted provider: a model whose answers a test writes down beforehand.

A script is a queue of steps, and every request takes the next one (FAUX-3). A step is

* an `AssistantMessage`, made with `assistant(...)`: streamed block by block, in seeded chunks
  (FAUX-6), or in one delta a block with `chunked=False`;
* a function `(request) -> AssistantMessage`, sync or async, evaluated when its turn comes;
* a list of actions (FAUX-22): stream items, which are emitted as they are, mixed with `Sleep`,
  `WaitGate`, `OpenGate`, `Fail`, `Drop`, `Hang`, `Call`. Nothing is added: a list without `Started`
  has no start, one that ends without `Ended` is a connection that dropped;
* an async function `(request, signal, emit) -> None` of exactly three parameters, for all else.

Pace and abort. Every item, those of hand-written steps included, goes through one door: wait
`pause_s`, look at the signal, emit. If the request was aborted, the door raises `RequestAborted`,
which ends the step, and the provider ends the stream with what was sent so far, stop reason
`aborted` (FAUX-8). What a step raises travels on and becomes an error message (LOOP-56).

Nothing here reads a clock or a global random source (FAUX-20): chunk sizes come from `seed`, ids
are counted, waiting is Trio's, and message times come from `clock`, or are left to the kernel.
"""

import inspect
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import (
    ABORTED,
    EMPTY,
    NO_USAGE,
    AssistantMessage,
    Emit,
    Ended,
    Model,
    ModelRequest,
    Signal,
    Started,
    StreamItem,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
    freeze,
    text_of,
)
from camshaft.extensions_std.providers.scripted_records import (
    CHARS_PER_TOKEN,
    RecordedRequest,
    ScriptState,
    UsageEstimate,
    payload_of,
    tokens_of,
    without_secrets,
)
from camshaft.extensions_std.providers.scripted_steps import (
    Action,
    Answer,
    Call,
    Drop,
    Fail,
    Hang,
    Live,
    OpenGate,
    Sleep,
    Step,
    WaitGate,
    assistant,
    block_items,
    checked_steps,
    faux_model,
    text,
    text_items,
    thinking,
    thinking_items,
    tool_call,
    tool_call_items,
)

__all__ = [
    "Action",
    "Answer",
    "Call",
    "Drop",
    "EXHAUSTED",
    "Fail",
    "Hang",
    "Live",
    "NO_STOP_REASON",
    "OpenGate",
    "RecordedRequest",
    "RequestAborted",
    "ScriptState",
    "ScriptedProvider",
    "Sleep",
    "Step",
    "WaitGate",
    "assistant",
    "faux_model",
    "text",
    "text_items",
    "thinking",
    "thinking_items",
    "tool_call",
    "tool_call_items",
]

EXHAUSTED: Final = "No more faux responses queued"
"""Error text of a request that finds no step left (FAUX-3)."""

NO_STOP_REASON: Final = "Faux response ended without a stop reason"
"""Error text of a scripted message whose stop reason is `pending` (FAUX-7)."""


class RequestAborted(Exception):
    """The request was aborted while a step waited or emitted. A step lets it pass."""


# -- the provider ------------------------------------------------------------------------


@attrs.define(eq=False, kw_only=True)
class ScriptedProvider:
    """A provider that answers from a script; see the header. Needs no credentials."""

    name: str = "faux"
    api: str = "faux"
    models: tuple[Model, ...] = attrs.field(factory=tuple)
    """Default: one `faux_model` of this provider and api."""
    seed: int = 0
    token_size: tuple[int, int] = (3, 5)
    """Tokens of a chunk, least and most; a token is four characters."""
    chunked: bool = True
    """False: each block of a scripted message is one delta."""
    tokens_per_second: float | None = None
    pause_s: float = 0
    """Wait before each item; 0 is a checkpoint only."""
    usage: Usage | None = None
    """Usage of every answer that brings none; None estimates (FAUX-5)."""
    clock: Callable[[], int] | None = None
    """Wall clock in ms for message times; None leaves them to the kernel."""
    records_messages: bool = True
    """Whether recorded requests hold the messages: O(n) a request."""
    requests: list[RecordedRequest] = attrs.field(factory=list, init=False)
    state: ScriptState = attrs.field(factory=ScriptState, init=False)
    _steps: list[Step] = attrs.field(factory=list, init=False)
    _gates: dict[str, trio.Event] = attrs.field(factory=dict, init=False)
    _estimate: UsageEstimate = attrs.field(factory=UsageEstimate, init=False)
    _random: random.Random = attrs.field(init=False)
    _ids: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._random = random.Random(self.seed)
        if not self.models:
            self.models = (faux_model(provider=self.name, api=self.api),)

    # script

    def configured(self) -> bool:
        """Always: a script needs no credentials."""
        return True

    def get_model(self, id: str | None = None) -> Model | None:
        """The model with this id; the first without one; None if unknown."""
        return next((model for model in self.models if id is None or model.id == id), None)

    def set_responses(self, steps: Iterable[Step]) -> None:
        """Replaces all steps not taken yet. Raises TypeError for what is no step."""
        self._steps = checked_steps(steps)

    def append_responses(self, steps: Iterable[Step]) -> None:
        """Adds steps at the end. Raises TypeError for what is no step."""
        self._steps.extend(checked_steps(steps))

    def get_pending_response_count(self) -> int:
        """Steps not taken yet."""
        return len(self._steps)

    def open_gate(self, name: str) -> None:
        """Lets everything pass that waits, or will wait, at this gate."""
        self._gate(name).set()

    async def wait_gate(self, name: str) -> None:
        """Waits until the gate is open."""
        await self._gate(name).wait()

    def assert_exhausted(self) -> None:
        """Raises AssertionError if a step was not taken, or a request found none."""
        faults = []
        if self._steps:
            faults.append(f"{len(self._steps)} scripted responses were not requested, the next is {_shown(self._steps[0])}")
        if self.state.unexpected_count:
            faults.append(f"{self.state.unexpected_count} of {self.state.call_count} requests found no scripted response")
        if faults:
            raise AssertionError("; ".join(faults))

    # stream

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """Plays the next step. Raises what the step raises; a cancelled scope leaves the request recorded as cancelled."""
        self.state.call_count += 1
        step = self._steps.pop(0) if self._steps else None
        play = _Play(self, request, signal, emit, number=len(self.requests))
        self._record(request)
        try:
            await self._call_hooks(request, play.number)
            await self._play(step, play)
        except trio.Cancelled:
            play.outcome = "cancelled"
            raise
        finally:
            self.requests[play.number] = attrs.evolve(self.requests[play.number], outcome=play.outcome)

    async def _call_hooks(self, request: ModelRequest, number: int) -> None:
        """As an adapter does, with a stable rendering of the request as its body (FAUX-23)."""
        hooks = request.hooks
        if hooks.on_headers is not None:
            await hooks.on_headers(request.options.headers)
        if hooks.on_payload is not None:
            payload = freeze(await hooks.on_payload(payload_of(request)))
            self.requests[number] = attrs.evolve(self.requests[number], payload=payload)
        if hooks.on_response is not None:
            await hooks.on_response(200, EMPTY)

    async def _play(self, step: Step | None, play: "_Play") -> None:
        try:
            if step is None:
                self.state.unexpected_count += 1
                await play.end(Ended(stop_reason="error", error_message=EXHAUSTED, usage=NO_USAGE))
            elif isinstance(step, AssistantMessage):
                await self._message(step, play)
            elif isinstance(step, Sequence):
                await self._actions(step, play)
            else:
                await self._function(step, play)
        except RequestAborted:
            usage = play.usage or self._usage(play.request, None)
            await play.end(attrs.evolve(ABORTED, usage=usage, timestamp=self._now()))
        if play.outcome == "raised":
            play.outcome = "dropped"

    async def _function(self, step: Any, play: "_Play") -> None:
        if len(inspect.signature(step).parameters) == 3:
            await step(play.request, play.signal, play.send)
            return
        message = step(play.request)
        await self._message(await message if inspect.isawaitable(message) else message, play)

    async def _actions(self, actions: Sequence[Action], play: "_Play") -> None:
        for action in actions:
            match action:
                case Sleep(seconds):
                    await play.wait(seconds)
                case WaitGate(name):
                    await play.wait_for(self._gate(name))
                case OpenGate(name):
                    self.open_gate(name)
                case Hang():
                    await play.signal.wait()
                    raise RequestAborted
                case Drop():
                    return
                case Fail(said, status):
                    await play.send(Ended(stop_reason="error", error_message=f"{status} {said}" if status else said))
                    return
                case Call(body):
                    done = body()
                    if done is not None:
                        await done
                case _:
                    await play.send(action)

    async def _message(self, message: AssistantMessage, play: "_Play") -> None:
        play.usage = self._usage(play.request, message)
        level = message.provider_thinking_level
        await play.send(Started(response_id=message.response_id, response_model=message.response_model, provider_thinking_level=level))
        for index, block in enumerate(message.content):
            named = attrs.evolve(block, id=self._next_id()) if isinstance(block, ToolCall) and not block.id else block
            for item in block_items(index, named, self._chunks):
                await play.send(item, delay_s=self._delay_of(item))
        await play.send(self._end_of(message, play.usage))

    def _end_of(self, message: AssistantMessage, usage: Usage) -> Ended:
        if message.stop_reason == "pending":
            return Ended(stop_reason="error", error_message=NO_STOP_REASON, usage=usage, timestamp=self._now())
        return Ended(
            stop_reason=message.stop_reason,
            error_message=message.error_message,
            usage=usage,
            raw_stop_reason=message.raw_stop_reason,
            deferred=message.deferred,
            diagnostics=message.diagnostics,
            end_turn=message.end_turn,
            timestamp=message.timestamp or self._now(),
        )

    def _chunks(self, value: str) -> Iterator[str]:
        """Pieces of seeded length; an empty text is one empty piece (FAUX-6)."""
        if not value or not self.chunked:
            yield value
            return
        start = 0
        while start < len(value):
            end = start + CHARS_PER_TOKEN * self._random.randint(*self.token_size)
            yield value[start:end]
            start = end

    def _delay_of(self, item: StreamItem) -> float:
        if self.tokens_per_second is None or not isinstance(item, (TextDelta, ThinkingDelta, ToolCallDelta)):
            return 0
        return tokens_of(item.delta) / self.tokens_per_second

    def _usage(self, request: ModelRequest, message: AssistantMessage | None) -> Usage:
        """As scripted if given (FAUX-21), else the estimate of FAUX-5."""
        if message is not None and message.usage != NO_USAGE:
            return message.usage
        return self.usage if self.usage is not None else self._estimate.usage_of(request, message)

    def _record(self, request: ModelRequest) -> None:
        record = RecordedRequest(
            number=len(self.requests),
            model=request.model,
            thinking_level=request.thinking_level,
            messages=tuple(request.messages) if self.records_messages else (),
            options=without_secrets(request.options),
            at_s=trio.current_time(),
        )
        self.requests.append(record)

    def _gate(self, name: str) -> trio.Event:
        return self._gates.setdefault(name, trio.Event())

    def _next_id(self) -> str:
        self._ids += 1
        return f"call_{self._ids}"

    def _now(self) -> int | None:
        return self.clock() if self.clock is not None else None


@attrs.define(eq=False)
class _Play:
    """One request being answered: the door through which its items go."""

    _provider: ScriptedProvider
    request: ModelRequest
    signal: Signal
    _emit: Emit
    number: int
    usage: Usage | None = None
    outcome: str = "raised"

    async def send(self, item: StreamItem, *, delay_s: float = 0) -> None:
        """Pauses, looks at the signal, emits. Raises RequestAborted."""
        await self.wait(self._provider.pause_s + delay_s)
        await self.end(item)

    async def end(self, item: StreamItem) -> None:
        """Emits at once, whatever the signal says."""
        if isinstance(item, Ended):
            self.outcome = item.stop_reason
        await self._emit(item)

    async def wait(self, seconds: float) -> None:
        """Waits that long; a checkpoint at least. Raises RequestAborted as soon as the request is aborted."""
        if seconds > 0:
            with trio.move_on_after(seconds):
                await self.signal.wait()
        else:
            await trio.lowlevel.checkpoint()
        self._check()

    async def wait_for(self, gate: trio.Event) -> None:
        """Waits for a gate or the abort, whichever comes first."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_after, self.signal.wait, nursery.cancel_scope)
            await gate.wait()
            nursery.cancel_scope.cancel()
        self._check()

    def _check(self) -> None:
        if self.signal.cancelled:
            raise RequestAborted


async def _cancel_after(wait: Callable[[], Awaitable[None]], scope: trio.CancelScope) -> None:
    await wait()
    scope.cancel()


def _shown(step: Step) -> str:
    """A step in an error: the text of an answer that has one, else everything."""
    text = text_of(step.content) if isinstance(step, AssistantMessage) else ""
    return f"assistant({text!r})" if text else repr(step)
