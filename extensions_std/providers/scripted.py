"""The scripted provider: a model whose answers a test writes down beforehand.

A script is a queue of steps, and every request takes the next one that is for it (FAUX-3). A step is

* an `AssistantMessage`, made with `assistant(...)`: streamed block by block, in seeded chunks
  (FAUX-6), or in one delta a block with `chunked=False`;
* a function `(request)` or `(request, state)`, sync or async, evaluated when its turn comes, that
  answers with a message or a list of actions;
* a list of actions (FAUX-22): stream items, which are emitted as they are, mixed with `Sleep`,
  `WaitGate`, `OpenGate`, `Fail`, `Drop`, `Hang`, `Call`, `Respond`, `Malformed`. Nothing is added: a
  list without `Started` has no start, one that ends without `Ended` is a connection that dropped;
* an async function `(request, signal, emit) -> None`, for all else;
* `when(step, ...)`: one of these for some requests only (FAUX-25).

Pace and abort. Every item, those of hand-written steps included, goes through one door: wait
`pause_s`, look at the signal, emit. If the request was aborted, the door raises `RequestAborted`,
which ends the step, and the provider ends the stream with what was sent so far, stop reason
`aborted` (FAUX-8). What a step raises travels on and becomes an error message (LOOP-56).

Deferred answers (FAUX-9). A request with the option `deferred` takes its step, and gets a handle
instead of the answer; `fetch_deferred` gives the handle again `pending_fetches` times, then the
answer, which is made once and is the same in all later fetches.

Nothing here reads a clock or a global random source (FAUX-20): chunk sizes come from `seed`, the
number of the request in its session, and the text; ids are counted in each session; waiting is
Trio's, and message times come from `clock`, or are left to the kernel.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
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
    Usage,
    freeze,
)
from camshaft.extensions_std.providers.scripted_deferred import Deferral, Deferrals, handle_items, why_not
from camshaft.extensions_std.providers.scripted_messages import (
    assistant,
    end_of,
    faux_model,
    message_items,
    text,
    text_items,
    thinking,
    thinking_items,
    tool_call,
    tool_call_items,
)
from camshaft.extensions_std.providers.scripted_numbers import Cutter, SessionNumbers, timed_items
from camshaft.extensions_std.providers.scripted_play import Gates, Play, RequestAborted, play_actions
from camshaft.extensions_std.providers.scripted_records import (
    RecordedRequest,
    ScriptState,
    UsageEstimate,
    hidden_headers,
    payload_of,
    record_of,
)
from camshaft.extensions_std.providers.scripted_steps import (
    Action,
    Answer,
    Call,
    Drop,
    Fail,
    Hang,
    Live,
    Malformed,
    OpenGate,
    Reply,
    Respond,
    Sleep,
    Step,
    WaitGate,
    When,
    checked_reply,
    checked_steps,
    live_of,
    parameters_of,
    response_of,
    shown,
    when,
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
    "Malformed",
    "NO_STOP_REASON",
    "OpenGate",
    "RecordedRequest",
    "Reply",
    "RequestAborted",
    "Respond",
    "ScriptState",
    "ScriptedProvider",
    "Sleep",
    "Step",
    "WaitGate",
    "When",
    "assistant",
    "faux_model",
    "message_items",
    "text",
    "text_items",
    "thinking",
    "thinking_items",
    "tool_call",
    "tool_call_items",
    "when",
]

EXHAUSTED: Final = "No more faux responses queued"
"""Error text of a request that finds no step left (FAUX-3)."""

NO_STOP_REASON: Final = "Faux response ended without a stop reason"
"""Error text of a scripted message whose stop reason is `pending` (FAUX-7)."""


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
    pending_fetches: int = 0
    """Fetches of a deferred answer that get the handle once more (FAUX-9)."""
    poll_after_ms: int | None = None
    """`pollAfterMs` of the handles."""
    requests: list[RecordedRequest] = attrs.field(factory=list, init=False)
    state: ScriptState = attrs.field(factory=ScriptState, init=False)
    _steps: list[Step] = attrs.field(factory=list, init=False)
    _gates: Gates = attrs.field(factory=Gates, init=False)
    _estimate: UsageEstimate = attrs.field(factory=UsageEstimate, init=False)
    _numbers: dict[str | None, SessionNumbers] = attrs.field(factory=dict, init=False)
    _deferrals: Deferrals = attrs.field(factory=Deferrals, init=False)

    def __attrs_post_init__(self) -> None:
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
        """Steps not taken yet; one that repeats counts as long as it is there."""
        return len(self._steps)

    def open_gate(self, name: str) -> None:
        """Lets everything pass that waits, or will wait, at this gate."""
        self._gates.open(name)

    async def wait_gate(self, name: str) -> None:
        """Waits until the gate is open."""
        await self._gates.event(name).wait()

    def assert_exhausted(self) -> None:
        """Raises AssertionError if a step was not taken, or a request found none."""
        faults = []
        left = [step for step in self._steps if not (isinstance(step, When) and step.repeats)]
        if left:
            faults.append(f"{len(left)} scripted responses were not requested, the next is {shown(left[0])}")
        if self.state.unexpected_count:
            faults.append(f"{self.state.unexpected_count} of {self.state.call_count} requests found no scripted response")
        if faults:
            raise AssertionError("; ".join(faults))

    def _take(self, request: ModelRequest) -> Step | None:
        """The first step that is for this request. Raises what a guard raises."""
        for index, step in enumerate(self._steps):
            if not isinstance(step, When):
                return self._steps.pop(index)
            if step.fits(request):
                return step.step if step.repeats else self._steps.pop(index).step  # type: ignore[union-attr]  # it is this When
        return None

    # stream

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """Plays the next step. Raises what the step raises; a cancelled scope leaves the request recorded as cancelled."""
        self.state.call_count += 1
        play = Play(request, signal, emit, len(self.requests), self.pause_s)
        self.requests.append(record_of(request, play.number, keeps_messages=self.records_messages))
        numbers = self._numbers_of(request)
        numbers.requests += 1
        cutter = Cutter(f"{self.seed}/{numbers.requests}", self.token_size, self.chunked)
        try:
            step = self._take(request)
            await self._call_hooks(request, play.number, step)
            if step is not None and request.options.deferred:
                kept = self._deferrals.keep(step, request, cutter, pending=self.pending_fetches, poll_after_ms=self.poll_after_ms)
                step = handle_items(kept.handle)
            await self._until_aborted(play, lambda: self._play(step, play, cutter))
        except trio.Cancelled:
            play.outcome = "cancelled"
            raise
        finally:
            self._note(play.number, outcome=play.outcome)

    async def fetch_deferred(
        self, request: ModelRequest, handle: Mapping[str, Any], signal: Signal, emit: Emit, *, wait_ms: int = 0
    ) -> None:
        """Gives the handle again, or the answer to the request that got it (FAUX-9).

        `request` says which model and hooks; it needs no messages. `wait_ms`: as long as that is not over, it
        looks again every `poll_after_ms`; 0 looks once. Raises what the step raises.
        """
        self.state.deferred_fetch_count += 1
        play = Play(request, signal, emit, -1, self.pause_s)
        if request.hooks.on_response is not None:
            await request.hooks.on_response(200, EMPTY)
        await self._until_aborted(play, lambda: self._fetch(handle, play, wait_ms))

    async def cancel_deferred(self, _model: Model, handle: Mapping[str, Any]) -> None:
        """Later fetches of the handle fail; `state.cancelled_deferred` has it, also if it is unknown (FAUX-9)."""
        await trio.lowlevel.checkpoint()
        self.state.cancelled_deferred.append(freeze(handle))
        kept = self._deferrals.find(handle)
        if kept is not None:
            kept.is_cancelled = True

    async def _fetch(self, handle: Mapping[str, Any], play: Play, wait_ms: int) -> None:
        kept = self._deferrals.find(handle)
        every_ms, left_ms = self.poll_after_ms or 0, wait_ms
        while kept is not None and kept.pending and 0 < every_ms <= left_ms:
            kept.pending -= 1
            left_ms -= every_ms
            await play.wait(every_ms / 1000)
        fault = why_not(kept, handle)
        if kept is None or fault is not None:
            await play.end(Ended("error", fault))
        elif kept.pending:
            kept.pending -= 1
            await play_actions(handle_items(kept.handle), play, self._gates)
        else:
            await self._play_kept(kept, play)

    async def _play_kept(self, kept: Deferral, play: Play) -> None:
        """The answer, made at the first time; a live step is played anew each time."""
        live = live_of(kept.step)
        if live is not None:
            play.tells_events = False
            await live(kept.request, play.signal, play.send)
            return
        async with kept.turn:
            if kept.reply is None:
                reply = await self._reply_of(kept.step, kept.request)
                if isinstance(reply, AssistantMessage) and not reply.timestamp:
                    reply = attrs.evolve(reply, timestamp=self._now() or 0)
                kept.reply = reply
        await self._play_reply(kept.reply, play, kept.cutter)

    async def _call_hooks(self, request: ModelRequest, number: int, step: Step | None) -> None:
        """As an adapter does, with a stable rendering of the request as its body (FAUX-23)."""
        hooks = request.hooks
        if hooks.on_headers is not None:
            self._note(number, headers=hidden_headers(await hooks.on_headers(request.options.headers)))
        if hooks.on_payload is not None:
            rendered = payload_of(request.model, request.thinking_level, request.messages, request.options)
            self._note(number, replaced_payload=freeze(await hooks.on_payload(rendered)))
        if hooks.on_response is not None:
            response = response_of(step)
            await hooks.on_response(response.status, response.headers)

    async def _until_aborted(self, play: Play, body: Callable[[], Awaitable[None]]) -> None:
        try:
            await body()
        except RequestAborted:
            usage = play.usage or self._usage(play.request, None)
            await play.end(attrs.evolve(ABORTED, usage=usage, timestamp=self._now()))
        if play.outcome == "raised":
            play.outcome = "dropped"

    async def _play(self, step: Step | None, play: Play, cutter: Cutter) -> None:
        live = live_of(step)
        if step is None:
            self.state.unexpected_count += 1
            await play.end(Ended("error", EXHAUSTED, usage=NO_USAGE))
        elif live is not None:
            play.tells_events = False
            await live(play.request, play.signal, play.send)
        else:
            await self._play_reply(await self._reply_of(step, play.request), play, cutter)

    async def _reply_of(self, step: Any, request: ModelRequest) -> Reply:
        """What the step answers: a message whose calls have ids and whose usage is known, or actions."""
        reply = step
        if callable(step):
            arguments = (request, self.state) if parameters_of(step) == 2 else (request,)
            answered = step(*arguments)
            reply = checked_reply(await answered if inspect.isawaitable(answered) else answered, step)
        if not isinstance(reply, AssistantMessage):
            return reply  # type: ignore[no-any-return]  # actions
        named = self._numbers_of(request).named(reply, request)
        return attrs.evolve(named, usage=self._usage(request, named))

    async def _play_reply(self, reply: Reply, play: Play, cutter: Cutter) -> None:
        if isinstance(reply, AssistantMessage):
            await self._message(reply, play, cutter)
        else:
            await play_actions(reply, play, self._gates)

    async def _message(self, message: AssistantMessage, play: Play, cutter: Cutter) -> None:
        play.usage = message.usage
        for item, delay_s in timed_items(message, cutter, self.tokens_per_second):
            await play.send(item, delay_s=delay_s)
        if message.stop_reason == "pending":
            await play.send(Ended("error", NO_STOP_REASON, usage=message.usage, timestamp=self._now()))
        else:
            end = end_of(message, message.usage)
            await play.send(attrs.evolve(end, timestamp=end.timestamp or self._now()))

    def _usage(self, request: ModelRequest, message: AssistantMessage | None) -> Usage:
        """As scripted if given (FAUX-21), else the estimate of FAUX-5."""
        if message is not None and message.usage is not NO_USAGE:
            return message.usage
        return self.usage if self.usage is not None else self._estimate.usage_of(request, message)

    # records

    def _note(self, number: int, **fields: Any) -> None:
        self.requests[number] = attrs.evolve(self.requests[number], **fields)

    def _numbers_of(self, request: ModelRequest) -> SessionNumbers:
        return self._numbers.setdefault(request.options.session_id, SessionNumbers())

    def _now(self) -> int | None:
        return self.clock() if self.clock is not None else None
