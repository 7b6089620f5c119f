"""One request to a model beside the conversation, mostly for a summary, with its own retries (CMP-37, RTY-15).

Unlike the requests of a run it shows nothing of its answer to anybody. What becomes of the
answer to a summary request is decided by `kernel/summaries.py`. It ends soon when its signal is set, also in
the wait before a retry; then the answer is an aborted one. Nothing of it is stored.
"""

from collections.abc import Sequence

import attrs
import trio

from camshaft.actors.answers import ABORTED_ANSWER, Kept, final_message
from camshaft.actors.providers import ModelRequest, RequestHooks, RequestOptions, provider_of
from camshaft.actors.request_hooks import summary_hooks
from camshaft.actors.routing import Dispatch, RouteFailed, Routing
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.signal import AbortSignal
from camshaft.kernel import retries, shapes
from camshaft.kernel.events import (
    Event,
    SummarizationRetryAttemptStart,
    SummarizationRetryFinished,
    SummarizationRetryScheduled,
    SummarySource,
)
from camshaft.kernel.messages import AssistantMessage, ModelMessage
from camshaft.kernel.models import Model
from camshaft.kernel.stream import Ended, begin, finish
from camshaft.kernel.summaries import SummaryFailure, SummaryRequest, SummaryText, answered


@shapes.frozen(kw_only=True)
class Summarizer:
    """Asks for the summaries of one operation: with the model and settings that hold when it begins (CMP-21)."""

    parts: SeatParts
    signal: AbortSignal
    model: Model
    thinking_level: str
    source: SummarySource | None = None
    """Of a summary; None: an extension asks something else. Then retries are not told, and no hook fires (WIRE-101)."""
    reason: str | None = None
    """Of a compaction."""
    shown: Sequence[ModelMessage] | None = None
    """What a router is shown if the model is virtual; None: the conversation, of which a summary is made."""

    async def summarize(self, request: SummaryRequest) -> SummaryText | SummaryFailure:
        """The text of the answer, or why there is none."""
        return answered(request.label, await self.ask(request.messages(self.parts.session.now_ms())))

    async def ask(self, messages: tuple[ModelMessage, ...]) -> AssistantMessage:
        """The last answer to `messages`: after the retries, and an aborted one if it is no longer wanted."""
        settings, attempt = self.parts.state.settings.retry, 0
        publish = self._told
        try:
            while True:
                message = await self._ask(messages)
                again = settings.enabled and attempt < settings.max_retries and retries.is_retryable(message, self.model.context_window)
                if self.signal.cancelled or not again:
                    return self._as_aborted(message) if self.signal.cancelled else message
                attempt += 1
                delay_ms = round(retries.retry_delay_ms(settings.base_delay_ms, attempt, settings.max_agent_delay_ms))
                publish(
                    SummarizationRetryScheduled(
                        attempt=attempt, max_attempts=settings.max_retries, delay_ms=delay_ms, error_message=message.error_message or ""
                    )
                )
                with trio.move_on_after(delay_ms / 1000):
                    await self.signal.wait()
                    return self._as_aborted(message)
                if self.source is not None:
                    publish(SummarizationRetryAttemptStart(source=self.source, reason=self.reason))
        finally:
            if attempt:
                publish(SummarizationRetryFinished())

    def _told(self, event: Event) -> None:
        if self.source is not None:
            self.parts.stream.publish(event)

    async def _ask(self, messages: tuple[ModelMessage, ...]) -> AssistantMessage:
        """One request. A virtual model is routed for each (VM-11); if that fails, so does the request."""
        parts = self.parts
        try:
            going = await self._dispatch()
        except RouteFailed as failed:
            model = self.model
            return finish(begin(model.api, model.provider, model.id, parts.session.now_ms()), Ended("error", str(failed)))
        model = going.model
        asked = ModelRequest(
            model=model,
            thinking_level=going.thinking_level,
            messages=messages,
            options=RequestOptions(session_id=parts.world.ids.session_id(), cache_retention="none"),
            hooks=RequestHooks() if self.source is None else summary_hooks(parts.host, model),
        )
        return await unseen_answer(parts, "summary request", asked, self.signal)

    async def _dispatch(self) -> Dispatch:
        if not self.model.is_virtual:
            return Dispatch(model=self.model, thinking_level=self.thinking_level)
        shown = self.parts.state.projection.llm_messages if self.shown is None else self.shown
        return await Routing(self.parts).direct(self.model, self.thinking_level, shown, self.signal)

    def _as_aborted(self, message: AssistantMessage) -> AssistantMessage:
        """An answer that came although it is no longer wanted is not used (CMP-43)."""
        return attrs.evolve(message, stop_reason=ABORTED_ANSWER.stop_reason)


async def unseen_answer(parts: SeatParts, what: str, request: ModelRequest, signal: AbortSignal) -> AssistantMessage:
    """The answer to one request, shown to nobody while it comes; whatever fails is its stop reason and error text.

    `what` names the request among what is left behind if the adapter does not end.
    """
    model = request.model
    partial = begin(model.api, model.provider, model.id, parts.session.now_ms())
    provider = provider_of(parts.providers, model)
    if provider is None:
        return finish(partial, Ended("error", f"No API provider registered for api: {model.api}"))
    kept = Kept(partial, parts.host)
    with signal.bounded() as bounds:
        name = f"{what} to {model.reference}"
        outcome = await parts.limbo.run(name, provider.stream, request, signal, kept.emit, bounds=bounds)
    kept.is_closed = True
    return final_message(kept.partial, outcome, aborted=signal.cancelled)
