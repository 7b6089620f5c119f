"""The request body of chat completions (WIRE-60 to WIRE-69), built from fragments of JSON.

A body is an ordered list of fields, each already encoded; messages come from the transcript, where
they were encoded when they were new. Sampling parameters replace fields of the same name (MOD-23).
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from camshaft.actors.api import EMPTY, FrozenDict, Json, Model, clamp_level
from camshaft.extensions_std.providers.budget import output_cap, thinking_budget
from camshaft.extensions_std.providers.compat import CompletionsFlags
from camshaft.extensions_std.providers.completions_render import leading_message, system_role, wire_tools
from camshaft.extensions_std.providers.preparation import encoded
from camshaft.extensions_std.providers.wire_transcript import Transcript, joined

ANSWER_ROOM: Final = 1024
"""Output tokens that thinking must leave for the answer (WIRE-67)."""

SESSION_ID_MAX: Final = 64
"""Code points of a prompt cache key (WIRE-61)."""


@attrs.frozen(kw_only=True)
class CompletionsOptions:
    """What a request may ask for (STR-4)."""

    level: str = "off"
    """Wanted thinking level; `off` stays off."""
    max_tokens: int | None = None
    is_neutral: bool = True
    """Whether the level is clamped to the model and an output cap computed (MOD-21, MOD-30); False sends both as they are."""
    temperature: float | None = None
    sampling_params: Mapping[str, Json] = EMPTY
    tool_choice: Json = None
    thinking_budgets: FrozenDict | None = None
    cache_retention: str = "short"
    session_id: str | None = None


def body_of(model: Model, flags: CompletionsFlags, transcript: Transcript, options: CompletionsOptions) -> bytes:
    """The body of a request for the messages that `transcript` follows. Raises ConstraintRefused."""
    level = options.level if model.reasoning else "off"
    cap = options.max_tokens or 0
    if options.is_neutral:
        level = clamp_level(model, level) if level != "off" else "off"
        cap = output_cap(model, transcript.estimate.tokens, options.max_tokens)
    mark = _cache_control(flags, options)
    fields = {"model": encoded(model.id), "messages": b"", "stream": b"true"}
    plain = {**_cache_fields(model, flags, options), **_fixed_fields(flags, cap, options)}
    fields.update({name: encoded(value) for name, value in plain.items()})
    if transcript.tools:
        fields["tools"] = transcript.remade("tools", (transcript.tools, mark), lambda key: wire_tools(key[0], flags, key[1]))
        if flags.zai_tool_stream:
            fields["tool_stream"] = b"true"
    elif flags.requires_tools_with_tool_history and transcript.has_tool_history:
        fields["tools"] = b"[]"
    sampling = {**model.sampling_params, **model.sampling_params_by_thinking_level.get(level, EMPTY), **options.sampling_params}
    late = {**_thinking_fields(model, flags, level, cap, options), **_routing(flags), **sampling}
    if options.tool_choice is not None and options.tool_choice != EMPTY:
        late = {"tool_choice": options.tool_choice, **late}
    fields.update({name: encoded(value) for name, value in late.items()})
    first = b""
    if transcript.leading_text:
        told = (system_role(model, flags), transcript.leading_text, mark)
        first = transcript.remade("leading", told, lambda key: encoded(leading_message(*key)))
    return joined(fields, "messages", transcript.wire_messages(mark, first))


def affinity_headers(flags: CompletionsFlags, options: CompletionsOptions) -> dict[str, str]:
    """Headers that keep a session on one server (WIRE-62)."""
    session = options.session_id
    if not session or options.cache_retention == "none" or not flags.send_session_affinity_headers:
        return {}
    names = {
        "openrouter": ("x-session-id",),
        "openai-nosession": ("x-client-request-id", "x-session-affinity"),
    }.get(flags.session_affinity_format, ("session_id", "x-client-request-id", "x-session-affinity"))
    return dict.fromkeys(names, session)


def _fixed_fields(flags: CompletionsFlags, cap: int, options: CompletionsOptions) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    if flags.supports_usage_in_streaming:
        fields["stream_options"] = {"include_usage": True}
    if flags.supports_store:
        fields["store"] = False
    if cap > 0:
        fields[flags.max_tokens_field] = cap
    if options.temperature is not None:
        fields["temperature"] = options.temperature
    if flags.vllm_priority is not None:
        fields["priority"] = flags.vllm_priority
    return fields


def _cache_fields(model: Model, flags: CompletionsFlags, options: CompletionsOptions) -> dict[str, Json]:
    if options.cache_retention == "none" or not options.session_id:
        return {}
    is_long = options.cache_retention == "long" and flags.supports_long_cache_retention
    mode = flags.prompt_cache_key_mode
    fields: dict[str, Json] = {}
    if mode == "enabled" or (mode == "auto" and ("api.openai.com" in model.base_url or is_long)):
        fields["prompt_cache_key"] = options.session_id[:SESSION_ID_MAX]
    if is_long:
        fields["prompt_cache_retention"] = "24h"
    return fields


def _cache_control(flags: CompletionsFlags, options: CompletionsOptions) -> dict[str, Any] | None:
    if flags.cache_control_format != "anthropic" or options.cache_retention == "none":
        return None
    is_long = options.cache_retention == "long" and flags.supports_long_cache_retention
    return {"type": "ephemeral", **({"ttl": "1h"} if is_long else {})}


def _routing(flags: CompletionsFlags) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    if flags.open_router_routing:
        fields["provider"] = flags.open_router_routing
    gateway = {name: flags.vercel_gateway_routing[name] for name in ("only", "order") if name in flags.vercel_gateway_routing}
    if gateway:
        fields["providerOptions"] = {"gateway": gateway}
    return fields


def _thinking_fields(model: Model, flags: CompletionsFlags, level: str, cap: int, options: CompletionsOptions) -> dict[str, Json]:
    """The fields of WIRE-66 and WIRE-67; nothing for a model that does not reason."""
    if not model.reasoning:
        return {}
    is_on = level != "off"
    limit = cap - ANSWER_ROOM if cap > 0 else None
    budget = thinking_budget(level, options.thinking_budgets) if is_on else 0
    budget = budget if limit is None else min(budget, limit)
    mapped = model.thinking_level_map.get(level, level if is_on else None)
    fields = _format_fields(model, flags, _Level(is_on=is_on, value=mapped, budget=budget))
    if is_on and flags.budget_field and budget > 0:
        fields[flags.budget_field] = budget
    return fields


@attrs.frozen(kw_only=True)
class _Level:
    """A clamped level: `value` is what the model's map gives, the level's own name, or, when off, None."""

    is_on: bool
    value: Json
    budget: int


def _format_fields(model: Model, flags: CompletionsFlags, level: _Level) -> dict[str, Json]:
    is_off_null = "off" in model.thinking_level_map and model.thinking_level_map["off"] is None
    effort = {"reasoning_effort": level.value} if level.is_on and flags.supports_reasoning_effort else {}
    off = level.value if isinstance(level.value, str) else "none"
    off_effort = {"reasoning_effort": level.value} if not level.is_on and isinstance(level.value, str) else {}
    match flags.thinking_format:
        case "openrouter":
            return {"reasoning": {"effort": level.value}} if level.is_on else {} if is_off_null else {"reasoning": {"effort": off}}
        case "deepseek":
            return {"thinking": {"type": "enabled"}, **effort} if level.is_on else {} if is_off_null else {"thinking": {"type": "disabled"}}
        case "together":
            return {"reasoning": {"enabled": level.is_on}, **effort}
        case "baseten":
            shown = off_effort if flags.supports_reasoning_effort else {}
            return {**_template("chat_template_args", flags.chat_template_args, level), **effort, **shown}
        case "zai":
            kept = {name: value for name, value in effort.items() if value is not None}
            return {"thinking": {"type": "enabled", "clear_thinking": False}, **kept} if level.is_on else {"thinking": {"type": "disabled"}}
        case "qwen":
            return {"enable_thinking": level.is_on, **effort}
        case "qwen-chat-template":
            return {"chat_template_kwargs": {"enable_thinking": level.is_on, "preserve_thinking": True}}
        case "chat-template":
            return _template("chat_template_kwargs", flags.chat_template_kwargs, level)
        case "string-thinking":
            return {"thinking": level.value} if level.is_on else {} if is_off_null else {"thinking": off}
        case "ant-ling":
            is_mapped = level.is_on and isinstance(model.thinking_level_map.get(_name_of(model, level)), str)
            return {"reasoning": {"effort": level.value}} if is_mapped else {}
    return effort if level.is_on else off_effort


def _name_of(model: Model, level: _Level) -> str:
    """The level whose mapped value is this one."""
    return next((name for name, value in model.thinking_level_map.items() if value == level.value), "")


def _template(field: str, configured: Mapping[str, Json], level: _Level) -> dict[str, Json]:
    """Values of a chat template; a variable without value is left out, and so is an empty object (WIRE-66)."""
    variables = {
        "thinking.enabled": level.is_on,
        "thinking.effort": level.value,
        "thinking.budget": level.budget if level.is_on and level.budget > 0 else None,
    }
    values: dict[str, Json] = {}
    for name, value in configured.items():
        if isinstance(value, Mapping) and "$var" in value:
            value = None if value.get("omitWhenOff") and not level.is_on else variables.get(value["$var"])
            if value is None:
                continue
        values[name] = value
    return {field: values} if values else {}
