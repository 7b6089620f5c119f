"""The request body of OpenAI's responses (WIRE-80 to WIRE-83), built from fragments of JSON.

A body is an ordered list of fields, each already encoded; input items come from the transcript, where
they were encoded when they were new. Sampling parameters replace fields of the same name (MOD-23).
The whole conversation is sent each time; nothing is kept at the server.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from camshaft.actors.api import EMPTY, Json, Model, clamp_level
from camshaft.extensions_std.providers.budget import output_cap
from camshaft.extensions_std.providers.compat import ResponsesFlags
from camshaft.extensions_std.providers.preparation import encoded
from camshaft.extensions_std.providers.responses_render import system_role, wire_tool
from camshaft.extensions_std.providers.wire_transcript import Transcript, joined

CACHE_KEY_MAX: Final = 64
"""Code points of a prompt cache key."""

OUTPUT_MIN: Final = 16
"""Least output that the API lets a request ask for, in tokens."""

SUMMARY: Final = "auto"
EFFORT_OF_SUMMARY: Final = "medium"
"""Effort of a request that asks for a summary and names none (STR-4)."""


@attrs.frozen(kw_only=True)
class ResponsesOptions:
    """What a request may ask for (STR-4)."""

    level: str = "off"
    """Wanted thinking level; `off` stays off."""
    is_neutral: bool = True
    """Whether the level is clamped to the model and an output cap computed (MOD-21, MOD-30); False sends both as they are."""
    effort: str | None = None
    """Sent as it is, whatever the model's map says of the level."""
    summary: str = SUMMARY
    max_tokens: int | None = None
    temperature: float | None = None
    sampling_params: Mapping[str, Json] = EMPTY
    tool_choice: Json = None
    service_tier: str | None = None
    cache_retention: str = "short"
    session_id: str | None = None


def body_of(model: Model, flags: ResponsesFlags, transcript: Transcript, options: ResponsesOptions) -> bytes:
    """The body of a request for the messages that `transcript` follows. Raises ConstraintRefused."""
    level = options.level if model.reasoning else "off"
    cap = options.max_tokens or 0
    if options.is_neutral:
        level = clamp_level(model, level) if level != "off" else "off"
        cap = output_cap(model, transcript.estimate.tokens, options.max_tokens)
    fields = {"model": encoded(model.id), "input": b"", "stream": b"true", "store": b"false"}
    plain = {**_cache_fields(flags, options), **_fixed_fields(flags, cap, options)}
    fields.update({name: encoded(value) for name, value in plain.items()})
    if transcript.tools:
        fields["tools"] = transcript.remade("tools", transcript.tools, lambda tools: encoded([wire_tool(tool, flags) for tool in tools]))
    late = _reasoning_fields(model, level, options)
    if options.tool_choice is not None and options.tool_choice != EMPTY:
        late = {"tool_choice": options.tool_choice, **late}
    late.update({**model.sampling_params, **model.sampling_params_by_thinking_level.get(level, EMPTY), **options.sampling_params})
    fields.update({name: encoded(value) for name, value in late.items()})
    first = b""
    if transcript.leading_text:
        told = (system_role(model, flags), transcript.leading_text)
        first = transcript.remade("leading", told, lambda key: encoded({"role": key[0], "content": key[1]}))
    return joined(fields, "input", transcript.wire_messages(None, first))


def affinity_headers(flags: ResponsesFlags, options: ResponsesOptions) -> dict[str, str]:
    """Headers that keep a session on one server (WIRE-82)."""
    session = options.session_id
    if not session or options.cache_retention == "none":
        return {}
    names = {"openrouter": ("x-session-id",), "openai-nosession": ("x-client-request-id",)}.get(
        flags.session_affinity_format, ("session-id", "x-client-request-id")
    )
    return dict.fromkeys(names, session)


def _fixed_fields(flags: ResponsesFlags, cap: int, options: ResponsesOptions) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    if cap > 0 and flags.supports_max_output_tokens:
        fields["max_output_tokens"] = max(cap, OUTPUT_MIN)
    if options.temperature is not None:
        fields["temperature"] = options.temperature
    if options.service_tier is not None:
        fields["service_tier"] = options.service_tier
    return fields


def _cache_fields(flags: ResponsesFlags, options: ResponsesOptions) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    if options.cache_retention == "none":
        return {"prompt_cache_options": {"mode": "explicit"}} if flags.supports_explicit_prompt_cache_mode else {}
    if options.session_id and flags.prompt_cache_key_mode != "disabled":
        fields["prompt_cache_key"] = options.session_id[:CACHE_KEY_MAX]
    if options.cache_retention == "long" and flags.supports_long_cache_retention:
        if flags.supports_explicit_prompt_cache_mode:
            fields["prompt_cache_options"] = {"ttl": "30m"}
        else:
            fields["prompt_cache_retention"] = "24h"
    return fields


def _reasoning_fields(model: Model, level: str, options: ResponsesOptions) -> dict[str, Json]:
    """The fields of WIRE-81; nothing for a model that does not reason."""
    if not model.reasoning:
        return {}
    if level == "off":
        off = model.thinking_level_map.get("off", "none")
        return {} if off is None else {"reasoning": {"effort": off or "none"}}
    effort = options.effort or model.thinking_level_map.get(level) or level
    return {"reasoning": {"effort": effort, "summary": options.summary}, "include": ["reasoning.encrypted_content"]}
