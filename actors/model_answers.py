"""Requests that extensions make to a model outside the conversation: what `ctx.ask_model` does.

As for a summary, nobody is shown the answer while it comes, tools are not offered, and failures
that may pass are tried again as the settings say. Unlike a summary it belongs to whoever asked:
the whole answer is theirs. What is left in the session is one `usage` entry, so that the work
counts (SES-26, SES-63), also if the answer is of no use. If the process dies before, nothing is.
"""

from camshaft.actors.generation import Checked
from camshaft.actors.model_asks import ModelAsk, ModelFailed
from camshaft.actors.providers import provider_of
from camshaft.actors.seat_parts import NO_MODEL_TEXT, SeatParts, no_key_text
from camshaft.actors.signal import followed
from camshaft.actors.summaries import Summarizer
from camshaft.kernel.commands import AppendUsage
from camshaft.kernel.convert import model_messages
from camshaft.kernel.messages import FAILED, NO_USAGE, AssistantMessage, ModelMessage, SystemMessage, UserMessage
from camshaft.kernel.models import Model, clamp_level


async def ask_model(parts: SeatParts, standing: Checked, ask: ModelAsk) -> AssistantMessage:
    """The answer. Raises ModelFailed, and StaleContext if the session was left meanwhile; nothing is stored there then."""
    model = _ready_model(parts, ask)
    level = ask.thinking_level or parts.state.selection.thinking_level
    sent = _sent(parts, ask)
    async with followed(ask.signal, parts.ground.limits.abort_grace_s) as signal:
        asking = Summarizer(parts=parts, signal=signal, model=model, thinking_level=clamp_level(model, level), shown=sent)
        answer = await asking.ask(sent)
    standing.check()
    if ask.record_usage and answer.usage != NO_USAGE:
        parts.posted(AppendUsage(kind=ask.kind, provider=answer.provider, model=answer.model, usage=answer.usage))
    if answer.stop_reason in FAILED:
        raise ModelFailed(answer.error_message or f"the request was {answer.stop_reason}", aborted=answer.stop_reason == "aborted")
    return answer


def _ready_model(parts: SeatParts, ask: ModelAsk) -> Model:
    model = ask.model or parts.state.selection.model
    if model is None:
        raise ModelFailed(NO_MODEL_TEXT)
    provider = provider_of(parts.providers, model)
    if provider is not None and not provider.configured():
        raise ModelFailed(no_key_text(model))
    return model


def _sent(parts: SeatParts, ask: ModelAsk) -> tuple[ModelMessage, ...]:
    now_ms = parts.session.now_ms()
    given = (UserMessage(content=ask.messages, timestamp=now_ms),) if isinstance(ask.messages, str) else ask.messages
    head = () if ask.system_prompt is None else (SystemMessage(content=ask.system_prompt, timestamp=now_ms),)
    return (*head, *model_messages(given))
