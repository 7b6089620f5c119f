"""The request body and headers of the Anthropic API (WIRE-40 to WIRE-50), built from fragments of JSON.

There are two ways in (STR-4). The neutral one names a level: it is clamped to the model, and an output
cap is computed that leaves thinking its budget and the answer its room. The API's own one says what
to send: `thinkingEnabled` and its companions are sent as they are.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from camshaft.actors.api import EMPTY, FrozenDict, Json, Model, ModelRequest, clamp_level
from camshaft.extensions_std.providers.anthropic_compat import AnthropicFlags
from camshaft.extensions_std.providers.anthropic_render import is_blank, text_block, wire_tools
from camshaft.extensions_std.providers.budget import output_cap, thinking_budget
from camshaft.extensions_std.providers.preparation import encoded
from camshaft.extensions_std.providers.wire_transcript import Transcript, joined

ANSWER_ROOM: Final = 1024
"""Output tokens that thinking must leave for the answer (MOD-32)."""

BUDGET_DEFAULT: Final = 1024
"""Thinking tokens if none are named; the least that the API takes (STR-4)."""

EFFORTS: Final[Mapping[str, str]] = {"minimal": "low", "low": "low", "medium": "medium"}
"""Level to effort; every other level is `high` (WIRE-47)."""

VERSION: Final = "2023-06-01"
FINE_GRAINED: Final = "fine-grained-tool-streaming-2025-05-14"
INTERLEAVED: Final = "interleaved-thinking-2025-05-14"
"""Values of headers (WIRE-2, WIRE-49)."""


@attrs.frozen(kw_only=True)
class AnthropicOptions:
    """What a request may ask for."""

    thinks: bool | None = None
    """Whether thinking is on, or told to be off; None: nothing is said about it."""
    level: str | None = None
    """The clamped level, if the request came by the neutral way; caps and budgets are computed then."""
    thinking_budgets: FrozenDict | None = None
    """By level, over the defaults (MOD-22)."""
    budget: int = BUDGET_DEFAULT
    effort: str | None = None
    display: str = "summarized"
    interleaves: bool = True
    max_tokens: int | None = None
    temperature: float | None = None
    tool_choice: Json = None
    user_id: str | None = None
    cache_retention: str = "short"
    session_id: str | None = None


def anthropic_options(model: Model, request: ModelRequest) -> AnthropicOptions:
    """What this API takes from the options of a request to `model`."""
    options, own = request.options, request.options.api_options
    user_id = options.metadata.get("user_id")
    shared = AnthropicOptions(
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        tool_choice=options.tool_choice,
        user_id=user_id if isinstance(user_id, str) else None,
        cache_retention=options.cache_retention or "short",
        session_id=options.session_id,
    )
    if own is None:
        return _neutral(shared, model, request)
    thinks = own.get("thinkingEnabled")
    return attrs.evolve(
        shared,
        thinks=thinks if isinstance(thinks, bool) and model.reasoning else None,
        budget=own.get("thinkingBudgetTokens") or BUDGET_DEFAULT,
        effort=own.get("effort"),
        display=own.get("thinkingDisplay") or "summarized",
        interleaves=own.get("interleavedThinking") is not False,
    )


def _neutral(shared: AnthropicOptions, model: Model, request: ModelRequest) -> AnthropicOptions:
    level = request.thinking_level
    level = clamp_level(model, level) if model.reasoning and level != "off" else "off"
    mapped = model.thinking_level_map.get(level)
    return attrs.evolve(
        shared,
        thinks=level != "off" if model.reasoning else None,
        level=level,
        thinking_budgets=request.options.thinking_budgets,
        effort=mapped if isinstance(mapped, str) else EFFORTS.get(level, "high"),
    )


def default_headers(model: Model, flags: AnthropicFlags, options: AnthropicOptions, *, has_tools: bool) -> dict[str, str]:
    """The headers of the API itself (WIRE-2, WIRE-49)."""
    betas = []
    if has_tools and not flags.supports_eager_tool_input_streaming:
        betas.append(FINE_GRAINED)
    if options.thinks and options.interleaves and not flags.force_adaptive_thinking:
        betas.append(INTERLEAVED)
    headers = {"accept": "application/json", "content-type": "application/json", "anthropic-version": VERSION}
    return {**headers, "anthropic-beta": ",".join(betas)} if betas else headers


def affinity_headers(flags: AnthropicFlags, options: AnthropicOptions) -> dict[str, str]:
    """The header that keeps a session on one server."""
    session = options.session_id
    if not session or options.cache_retention == "none" or not flags.send_session_affinity_headers:
        return {}
    return {"x-session-id" if flags.session_affinity_format == "openrouter" else "x-session-affinity": session}


def body_of(model: Model, flags: AnthropicFlags, transcript: Transcript, options: AnthropicOptions, *, is_plain: bool) -> bytes:
    """The body of a request for the messages that `transcript` follows. Raises ConstraintRefused."""
    mark = _cache_control(flags, options)
    cap, budget = _cap_and_budget(model, flags, transcript, options)
    fields = {"model": encoded(model.id), "messages": b"", "max_tokens": encoded(cap), "stream": b"true"}
    if not is_blank(transcript.leading_text):
        fields["system"] = transcript.remade("system", (transcript.leading_text, mark), lambda key: encoded([_marked(*key)]))
    if transcript.tools:
        tool_mark = mark if flags.supports_cache_control_on_tools else None
        key = (transcript.tools, tool_mark)
        fields["tools"] = transcript.remade("tools", key, lambda key: wire_tools(key[0], flags, key[1], is_plain=is_plain))
    late = _thinking_fields(model, flags, options, budget)
    if options.temperature is not None and not options.thinks and flags.supports_temperature:
        late["temperature"] = options.temperature
    if options.user_id is not None:
        late["metadata"] = {"user_id": options.user_id}
    if options.tool_choice is not None and options.tool_choice != EMPTY:
        late["tool_choice"] = {"type": options.tool_choice} if isinstance(options.tool_choice, str) else options.tool_choice
    fields.update({name: encoded(value) for name, value in late.items()})
    return joined(fields, "messages", transcript.wire_messages(mark))


def _cap_and_budget(model: Model, flags: AnthropicFlags, transcript: Transcript, options: AnthropicOptions) -> tuple[int, int]:
    """Output tokens and, of them, thinking tokens (MOD-30, MOD-32)."""
    if options.level is None:
        return (model.max_tokens or 1) if options.max_tokens is None else options.max_tokens, options.budget
    wanted = options.max_tokens or model.max_tokens
    budget = thinking_budget(options.level, options.thinking_budgets) if options.thinks and not flags.force_adaptive_thinking else 0
    if wanted and budget:
        wanted = min(wanted + budget, model.max_tokens or wanted + budget)
    cap = max(1, output_cap(model, transcript.estimate.tokens, wanted))
    return cap, min(budget, max(0, cap - ANSWER_ROOM)) or BUDGET_DEFAULT


def _thinking_fields(model: Model, flags: AnthropicFlags, options: AnthropicOptions, budget: int) -> dict[str, Json]:
    """What is said about thinking (WIRE-47)."""
    if options.thinks is None:
        return {}
    if not options.thinks:
        is_off_null = "off" in model.thinking_level_map and model.thinking_level_map["off"] is None
        return {} if is_off_null else {"thinking": {"type": "disabled"}}
    if not flags.force_adaptive_thinking:
        return {"thinking": {"type": "enabled", "budget_tokens": budget, "display": options.display}}
    effort = {"output_config": {"effort": options.effort}} if options.effort is not None else {}
    return {"thinking": {"type": "adaptive", "display": options.display}, **effort}


def _cache_control(flags: AnthropicFlags, options: AnthropicOptions) -> dict[str, Any] | None:
    if options.cache_retention == "none":
        return None
    is_long = options.cache_retention == "long" and flags.supports_long_cache_retention
    return {"type": "ephemeral", **({"ttl": "1h"} if is_long else {})}


def _marked(text: str, cache_control: dict[str, Any] | None) -> dict[str, Any]:
    return {**text_block(text), "cache_control": cache_control} if cache_control else text_block(text)
