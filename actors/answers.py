"""One request to a model: its context, the stream of its answer, the final message.

The context is a lazy view of the projection unless a handler wants to see it (LOOP-16). An
adapter pushes items; every item is folded, shown to handlers, then to hosts, before the
adapter goes on. Whatever the adapter does, there is one final message: what arrived, ended as
the stream said, or as its failure says (STR-30, STR-33, STR-35).
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import attrs
import trio

from camshaft.actors.actor import Abandoned, Cut, Failure, Limbo, Value
from camshaft.actors.event_stream import EventStream
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.loadouts import without_hidden
from camshaft.actors.providers import ModelRequest, Provider, RequestOptions, provider_of
from camshaft.actors.request_hooks import request_hooks
from camshaft.actors.session import SessionActor
from camshaft.actors.signal import AbortSignal
from camshaft.kernel import shapes
from camshaft.kernel.convert import model_message, without_images
from camshaft.kernel.events import MessageStart, MessageUpdate
from camshaft.kernel.messages import AssistantMessage, Message, ModelMessage
from camshaft.kernel.models import Model
from camshaft.kernel.starting import forced_transcript
from camshaft.kernel.stream import NO_TERMINAL, Ended, Partial, StreamItem, Violation, begin, event_of, finish, fold

ABORTED_ANSWER: Final = Ended("aborted", "Request was aborted")
"""How a request ends that an abort prevented or cut (STR-33)."""


class Warmed(Protocol):
    """What keeps the provider's prompt cache of the session from expiring."""

    @property
    def options(self) -> RequestOptions:
        """The options of a request of the session."""
        ...

    def requested(self, request: ModelRequest) -> None:
        """A request is about to be made."""
        ...


@shapes.frozen(kw_only=True)
class Answer:
    """The final message of a request, and whether its start was announced already."""

    message: AssistantMessage
    announced: bool
    retry_after_ms: int | None = None
    """The wait that the server of a failed request asks for (WIRE-22)."""


@shapes.define(eq=False)
class Answers:
    """Asks models on behalf of one run."""

    signal: AbortSignal
    _session: SessionActor
    _host: ExtensionHost
    _stream: EventStream
    _limbo: Limbo
    _warming: Warmed

    async def context(self, forced_prompt: str | None) -> Sequence[ModelMessage]:
        """The messages of the next request: the transcript after its handlers, the forced prompt, converted.

        Images are blocked last, so that handlers see what the session holds (CTX-34).
        """
        messages = await self._converted(forced_prompt)
        if not self._session.state.settings.images.block_images:
            return messages
        return tuple([without_images(message) for message in messages])

    async def _converted(self, forced_prompt: str | None) -> Sequence[ModelMessage]:
        projection = self._session.state.projection
        hidden = self._host.loadouts.current.hidden
        if not self._host.has("context") and not self._host.has("context_with_system") and forced_prompt is None and not hidden:
            return projection.llm_messages
        transcript: tuple[Message, ...] = tuple(projection.messages)
        for hook in ("context", "context_with_system"):
            if self._host.has(hook):
                transcript = await self._host.dispatch(hook, transcript)
        if hidden:
            transcript = without_hidden(transcript, hidden)
        if forced_prompt is not None:
            transcript = forced_transcript(transcript, forced_prompt, self._session.now_ms())
        return tuple([converted for message in transcript if (converted := model_message(message)) is not None])

    async def ask(self, model: Model, level: str, messages: Sequence[ModelMessage], providers: Sequence[Provider]) -> Answer:
        """One request; after an abort none is made and the answer is an empty aborted one (LOOP-63)."""
        started_ms, started = self._session.now_ms(), trio.current_time()
        partial = begin(model.api, model.provider, model.id, started_ms)
        if self._session.state.live.aborting:
            answer = Answer(message=finish(partial, ABORTED_ANSWER), announced=False)
        else:
            await self._session.log.barrier()
            answer = await self._streamed(model, level, messages, (partial, provider_of(providers, model)))
        message = answer.message
        duration = message.duration_ms
        if duration is None and message.timestamp >= started_ms:
            duration = round((trio.current_time() - started) * 1000)
        return attrs.evolve(answer, message=attrs.evolve(message, duration_ms=duration, thinking_level=level))

    async def _streamed(self, model: Model, level: str, messages: Sequence[ModelMessage], begun: tuple[Partial, Provider | None]) -> Answer:
        partial, provider = begun
        if provider is None:
            return Answer(message=finish(partial, Ended("error", f"No API provider registered for api: {model.api}")), announced=False)
        sink = _Sink(partial, self._host, self._stream)
        request = ModelRequest(
            model=model,
            thinking_level=level,
            messages=messages,
            options=self._warming.options,
            hooks=request_hooks(self._host, model),
        )
        self._warming.requested(request)
        with self.signal.bounded() as bounds:
            name = f"request to {model.reference}"
            outcome = await self._limbo.run(name, provider.stream, request, self.signal, sink.emit, bounds=bounds)
        message = sink.finish(outcome, aborted=self.signal.cancelled)
        ended = sink.partial.ended
        return Answer(message=message, announced=sink.shown, retry_after_ms=None if ended is None else ended.retry_after_ms)


@shapes.define(eq=False)
class _Sink:
    """Folds the items of an answer and shows them."""

    partial: Partial
    _host: ExtensionHost
    _stream: EventStream
    shown: bool = False
    """Whether `message_start` was sent."""
    is_closed: bool = False
    """The message is final; a provider that was given up may still emit."""

    async def emit(self, item: StreamItem) -> None:
        """Takes one item; what breaks the protocol is dropped and reported (STR-36), what comes after the end is dropped."""
        if self.is_closed:
            return
        folded = fold(self.partial, item)
        if isinstance(folded, Violation):
            self._host.report("<provider>", "stream", folded.text)
            return
        self.partial = folded
        event = event_of(folded, item)
        if event is None or folded.ended is not None:
            return
        if not self.shown:
            self.shown = True
            await self._host.announce(MessageStart(message=folded.message))
        if event.type != "start":
            await self._host.announce(MessageUpdate(partial=folded, assistant_message_event=event))

    def finish(self, outcome: Value[Any] | Failure | Cut | Abandoned, *, aborted: bool) -> AssistantMessage:
        """The final message; what comes after it is dropped."""
        self.is_closed = True
        return final_message(self.partial, outcome, aborted=aborted)


@shapes.define(eq=False)
class Kept:
    """Folds the items of an answer and shows them to nobody."""

    partial: Partial
    _host: ExtensionHost
    is_closed: bool = False
    """The answer is final; a provider that was given up may still emit."""

    async def emit(self, item: StreamItem) -> None:
        """Takes one item; what breaks the protocol is dropped and reported (STR-36)."""
        folded: Any = fold(self.partial, item) if not self.is_closed else None
        if isinstance(folded, Violation):
            self._host.report("<provider>", "stream", folded.text)
        elif folded is not None:
            self.partial = folded


def final_message(partial: Partial, outcome: Value[Any] | Failure | Cut | Abandoned, *, aborted: bool) -> AssistantMessage:
    """What arrived, ended as the stream said or as its failure says (STR-30, STR-33, STR-35)."""
    return partial.message if partial.ended is not None else finish(partial, ended_of(partial, outcome, aborted=aborted))


def ended_of(partial: Partial, outcome: Value[Any] | Failure | Cut | Abandoned, *, aborted: bool) -> Ended:
    """How an answer ended: as its stream said, else as an abort or its failure says."""
    if partial.ended is not None:
        return partial.ended
    if aborted:
        return ABORTED_ANSWER
    return Ended("error", outcome.text) if isinstance(outcome, Failure) else NO_TERMINAL
