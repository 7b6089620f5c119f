"""Requests that extensions and hosts make to a model through the registry (STR-1 to STR-4, STR-30, STR-31, VM-11, WIRE-101).

Credentials are resolved by the provider. No hook fires, nothing is stored, nothing is tried again, and the conversation is not
shown: what is asked and what comes of it is the caller's affair. `ctx.ask_model` does more for most purposes: it tries
again and counts what was used.

Theory of operation. A stream is made at once and its request runs in a task of its own, which outlives nobody: it ends when its
signal is set or the kernel ends. It is never slower than its provider: events wait in the stream for whoever reads
them, and their number is bounded by that of the answer. After a stream was made nothing is raised through it; every failure is
its last event and its final message.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import trio

from camshaft.actors import other_models
from camshaft.actors.actor import Value, guard
from camshaft.actors.answers import ABORTED_ANSWER, ended_of
from camshaft.actors.providers import ModelRequest, Provider, provider_of
from camshaft.actors.registry_asks import Asking, ClassifierResult, ImagesResult, ModelStream
from camshaft.actors.routing import RouteFailed, Routing
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.signal import AbortSignal, followed
from camshaft.kernel import shapes
from camshaft.kernel.messages import AssistantMessage, ModelMessage
from camshaft.kernel.models import Model, clamp_level
from camshaft.kernel.persistent import EMPTY
from camshaft.kernel.stream import AssistantMessageEvent, Ended, Partial, StreamItem, Violation, begin, event_of, fold
from camshaft.kernel.tools import Signal


@shapes.frozen(eq=False)
class ModelRequests:
    """The requests of one conversation's extensions."""

    _parts: SeatParts

    def stream(self, asking: Asking, *, is_simple: bool) -> ModelStream:
        """A stream, at once. Not `is_simple`: what the options say is sent as it is (STR-4)."""
        model, options = asking.model, asking.options
        if not is_simple and options.api_options is None:
            asking = attrs.evolve(asking, options=attrs.evolve(options, api_options=EMPTY))
        send, receive = trio.open_memory_channel[AssistantMessageEvent](math.inf)
        made = ModelStream(receive, begin(model.api, model.provider, model.id, self._parts.session.now_ms()))
        self._parts.nursery.start_soon(self._run, made, send, asking)
        return made

    async def generate_images(self, model: Model, input: object, options: Mapping[str, Any], signal: Signal | None) -> ImagesResult:
        """The images, or why there are none; never raises."""
        return await other_models.generate_images(self._parts, model, (input, options, signal))

    async def classify(self, model: Model, input: object, options: Mapping[str, Any], signal: Signal | None) -> ClassifierResult:
        """The answers, or why there are none; never raises."""
        return await other_models.classify(self._parts, model, (input, options, signal))

    async def _run(self, stream: ModelStream, send: trio.MemorySendChannel[AssistantMessageEvent], asking: Asking) -> None:
        sink = _Sink(stream.partial, send)
        started, ended = trio.current_time(), ABORTED_ANSWER
        try:
            async with followed(asking.signal, self._parts.ground.limits.abort_grace_s) as signal, trio.open_nursery() as nursery:
                nursery.start_soon(_pass_on, stream.aborting, signal)
                ended = await self._answer(sink, asking, signal)
                nursery.cancel_scope.cancel()
        finally:
            stream.finish(sink.end(ended), round((trio.current_time() - started) * 1000))

    async def _answer(self, sink: "_Sink", asking: Asking, signal: AbortSignal) -> Ended:
        """How it ended; what came is in the sink."""
        parts = self._parts
        outcome = await guard(asking.transcript, parts.session.now_ms())
        if not isinstance(outcome, Value):
            return Ended("error", f"messages that cannot be sent: {getattr(outcome, 'text', 'cancelled')}")
        messages = outcome.value
        try:
            asked = await self._routed(asking, messages, signal)
            provider = self._ready(asked)
        except (RouteFailed, _Refused) as refused:
            return ABORTED_ANSWER if signal.cancelled else Ended("error", str(refused))
        model = asked.model
        sink.partial = begin(model.api, model.provider, model.id, sink.partial.message.timestamp)
        request = ModelRequest(model=model, thinking_level=asked.thinking_level, messages=messages, options=asked.options)
        with signal.bounded() as bounds:
            name = f"request to {model.reference}"
            result = await parts.limbo.run(name, provider.stream, request, signal, sink.emit, bounds=bounds)
        return ended_of(sink.partial, result, aborted=signal.cancelled)

    async def _routed(self, asking: Asking, messages: Sequence[ModelMessage], signal: AbortSignal) -> Asking:
        """The request as it goes to a physical model (VM-11). Raises RouteFailed, _Refused."""
        model, options = asking.model, asking.options
        if not model.is_virtual:
            level = asking.thinking_level if options.api_options is not None else clamp_level(model, asking.thinking_level)
            return attrs.evolve(asking, thinking_level=level)
        if options.api_options is not None:
            raise _Refused(f"Virtual model {model.reference} must be routed before streaming")
        going = await Routing(self._parts).direct(model, asking.thinking_level, messages, signal)
        limit, wanted = going.model.max_tokens, options.max_tokens
        if wanted is not None and limit > 0:
            options = attrs.evolve(options, max_tokens=min(wanted, limit))
        if going.model.provider != model.provider:
            options = attrs.evolve(options, api_key=None, headers=EMPTY, env=EMPTY)
        return attrs.evolve(asking, model=going.model, thinking_level=going.thinking_level, options=options)

    def _ready(self, asking: Asking) -> Provider:
        """Who answers. Raises _Refused (STR-31)."""
        model = asking.model
        if not model.is_chat:
            raise _Refused(f"Model {model.reference} is not a chat model")
        provider = provider_of(self._parts.providers, model)
        if provider is None:
            raise _Refused(f"Unknown provider: {model.provider}")
        if asking.options.api_key is None and not asking.options.env and not provider.configured():
            raise _Refused(f"Provider is not configured: {model.provider}")
        return provider


class _Refused(Exception):
    """A request that cannot be made."""


@shapes.define(eq=False)
class _Sink:
    """Folds items and passes their events on."""

    partial: Partial
    _send: trio.MemorySendChannel[AssistantMessageEvent]
    _is_closed: bool = False

    async def emit(self, item: StreamItem) -> None:
        """What breaks the protocol is dropped (STR-36), and so is what comes after the end."""
        folded = fold(self.partial, item) if not self._is_closed else None
        if folded is None or isinstance(folded, Violation):
            return
        self.partial = folded
        event = event_of(folded, item)
        if event is not None and folded.ended is None:
            self._send.send_nowait(event)

    def end(self, ended: Ended) -> AssistantMessage:
        """Sends the last event; gives the final message, which it shows."""
        self._is_closed = True
        last = self.partial if self.partial.ended is not None else fold(self.partial, ended)
        assert not isinstance(last, Violation)  # A failure may end a partial in every state.
        event = event_of(last, last.ended or ended)
        if event is not None:
            self._send.send_nowait(event)
        self._send.close()
        return last.message


async def _pass_on(asked: AbortSignal, signal: AbortSignal) -> None:
    await asked.wait()
    signal.request()
